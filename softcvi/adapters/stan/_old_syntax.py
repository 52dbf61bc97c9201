"""Programs in the syntax that Stan 2.33 removed, rewritten in today's.

Old arrays (``real y[N];``, ``int[,] x``), ``<-`` for assignment, ``#`` for comments,
``increment_log_prob``, a few renamed functions, and functions of the program by a name
that is Stan's now. Only programs that the compiler refuses are rewritten, so that a
pattern found by mistake does no harm.
"""

import re
from collections.abc import Callable

_TYPES = (
    "int|real|complex|vector|row_vector|matrix|simplex|unit_vector|ordered|"
    "positive_ordered|cholesky_factor_corr|cholesky_factor_cov|corr_matrix|cov_matrix"
)
_RENAMED = {
    "integrate_ode": "integrate_ode_rk45",
    "multiply_log": "lmultiply",
    "binomial_coefficient_log": "lchoose",
    "cov_exp_quad": "gp_exp_quad_cov",
    "fabs": "abs",
}
_DENSITIES = (
    "bernoulli|bernoulli_logit|binomial|binomial_logit|beta|beta_binomial|categorical|"
    "categorical_logit|cauchy|chi_square|dirichlet|double_exponential|exp_mod_normal|"
    "exponential|frechet|gamma|gaussian_dlm_obs|gumbel|hypergeometric|inv_chi_square|"
    "inv_gamma|inv_wishart|lkj_corr|lkj_corr_cholesky|logistic|lognormal|multi_gp|"
    "multi_gp_cholesky|multi_normal|multi_normal_cholesky|multi_normal_prec|"
    "multi_student_t|multinomial|neg_binomial|neg_binomial_2|neg_binomial_2_log|normal|"
    "ordered_logistic|pareto|pareto_type_2|poisson|poisson_log|rayleigh|"
    "scaled_inv_chi_square|skew_normal|student_t|uniform|von_mises|weibull|wiener|"
    "wishart"
)
_DISCRETE = (
    "bernoulli",
    "binomial",
    "beta_binomial",
    "categorical",
    "hypergeometric",
    "multinomial",
    "neg_binomial",
    "ordered_logistic",
    "poisson",
)


def modernised(text: str) -> str:
    """The program in current syntax; the same text if nothing was found.

    Args:
        text: A Stan program.

    Example:
        >>> modernised("data { int N; real y[N]; }")
        'data { int N; array[N] real y; }'
    """
    code, kept = _without_comments(text)
    code = _assignments(code)
    code = _own_densities(code)
    code = _functions(code)
    code = _argument_types(code)
    code = _declarations(code)
    return _with_comments(code, kept)


def renamed(text: str, name: str) -> str:
    """The program with another name for a function of its own.

    Args:
        text: A Stan program.
        name: A function whose name Stan has taken since.

    Example:
        >>> renamed("real f(real x) { return x; } // f", "f")
        'real f_own(real x) { return x; } // f'
        >>> renamed("real f_lpdf(real x) { return x; } x ~ f();", "f_lpdf")
        'real f_own_lpdf(real x) { return x; } x ~ f_own();'
    """
    code, kept = _without_comments(text)
    base = re.sub(r"_lp[dm]f$", "", name)
    if base == name:
        code = re.sub(rf"\b{name}\b", f"{name}_own", code)
    else:
        code = re.sub(rf"\b{base}(?=_lu?p[dm]f\b)", f"{base}_own", code)
        code = re.sub(rf"(~\s*){base}\b", rf"\1{base}_own", code)
    return _with_comments(code, kept)


def _without_comments(text: str) -> tuple[str, list[str]]:
    """Comments and strings replaced by marks, so that no pattern matches in them."""
    kept: list[str] = []

    def keep(match: re.Match) -> str:
        found = match.group(0)
        if found.startswith("#") and not found.startswith("#include"):
            found = "//" + found[1:]
        kept.append(found)
        return f"\x00{len(kept) - 1}\x00"

    pattern = r'/\*.*?\*/|//[^\n]*|#[^\n]*|"[^"\n]*"'
    return re.sub(pattern, keep, text, flags=re.DOTALL), kept


def _with_comments(code: str, kept: list[str]) -> str:
    return re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match.group(1))], code)


def _assignments(code: str) -> str:
    """``<-`` for ``=``, outside brackets, where ``a <- 1`` compares with minus one."""
    out, depth = [], 0
    for part in re.split(r"(<-|[()\[\]])", code):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(part, 0)
        out.append("=" if part == "<-" and depth == 0 else part)
    # The log density so far was once a variable.
    return re.sub(r"\blp__\s*=\s*lp__\s*(?=[-+])", "target += ", "".join(out))


def _own_densities(code: str) -> str:
    """``real f_log(real y, real mu)`` with ``y ~ f(mu)``, by the suffixes of today."""
    for name, first in re.findall(r"\breal\s+(\w+)_log\s*\(\s*([^,)]*)", code):
        if not re.search(rf"~\s*{name}\s*\(", code):
            continue
        suffix = "lpmf" if first.lstrip().startswith("int") else "lpdf"
        code = re.sub(rf"\b{name}_log\b", f"{name}_{suffix}", code)
    return code


def _functions(code: str) -> str:
    code = re.sub(r"\bincrement_log_prob\s*\(", "target += (", code)
    code = re.sub(r"\bget_lp\s*\(\s*\)", "target()", code)
    for old, new in _RENAMED.items():
        code = re.sub(rf"\b{old}\s*\(", f"{new}(", code)
    code = _calls(code, r"if_else", lambda _, args: _ternary(args))
    code = _calls(code, rf"(?:{_DENSITIES})_log", _log_density)
    code = _calls(code, r"\w+_c?cdf_log", _log_cdf)
    return _calls(code, r"\w+_(?:l?cdf|lccdf|lpdf|lpmf)", _with_bar)


def _calls(code: str, name: str, change: Callable[[str, list[str]], str]) -> str:
    """Each call of a function by these names, changed by its name and arguments."""
    out, position = [], 0
    # Declarations have a type in front; calls never have.
    pattern = re.compile(rf"(?<![\w.])(?<!real )(?<!vector )({name})\s*(?=\()")
    while match := pattern.search(code, position):
        end = _skip(code, match.end(), "(", ")")
        if code[: match.start()].rstrip().endswith("~"):
            # `y ~ poisson_log(eta)` names a distribution, and is current syntax.
            out.append(code[position:end])
            position = end
            continue
        inner = _calls(code[match.end() + 1 : end - 1], name, change)
        out += [code[position : match.start()], change(match[1], _arguments(inner))]
        position = end
    return "".join([*out, code[position:]])


def _arguments(text: str) -> list[str]:
    """Arguments between the commas that are in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _ternary(args: list[str]) -> str:
    condition, first, second = (arg.strip() for arg in args)
    return f"(({condition}) ? ({first}) : ({second}))"


def _log_density(name: str, args: list[str]) -> str:
    base = name.removesuffix("_log")
    return _with_bar(f"{base}_{'lpmf' if base.startswith(_DISCRETE) else 'lpdf'}", args)


def _log_cdf(name: str, args: list[str]) -> str:
    base, kind = re.fullmatch(r"(\w+?)_(c?cdf)_log", name).groups()  # type: ignore
    return _with_bar(f"{base}_l{kind}", args)


def _with_bar(name: str, args: list[str]) -> str:
    """``normal_lpdf(y, mu, sigma)`` as ``normal_lpdf(y | mu, sigma)``."""
    first, *rest = args
    if "|" in first.replace("||", "") or not rest:
        return f"{name}({','.join(args)})"
    return f"{name}({first} |{','.join(rest)})"


def _argument_types(code: str) -> str:
    """``real[] x`` and ``int[,] x`` in the heads of functions."""

    def replace(match: re.Match) -> str:
        return f"array[{match.group(2)}] {match.group(1)} "

    return re.sub(rf"\b({_TYPES})\s*\[([\s,]*)\]\s*(?=\w)", replace, code)


def _declarations(code: str) -> str:
    """``vector[K] beta[J, L];`` as ``array[J, L] vector[K] beta;``."""
    start = re.compile(rf"(?<![\w\]])\b({_TYPES})\b(?!\s*\()")
    out, position = [], 0
    while match := start.search(code, position):
        out.append(code[position : match.start()])
        end = _skip(code, match.end(), "<", ">")
        end = _skip(code, end, "[", "]")
        name = re.compile(r"\s+(\w+)\s*(?=\[)").match(code, end)
        if name is None:
            out.append(code[match.start() : end])
            position = end
            continue
        close = _skip(code, name.end(), "[", "]")
        after = code[close:].lstrip()[:1]
        if after not in (";", "=", "<"):
            out.append(code[match.start() : end])
            position = end
            continue
        sizes = code[name.end() : close]
        out.append(f"array{sizes} {code[match.start() : end]} {name.group(1)}")
        position = close
    out.append(code[position:])
    return "".join(out)


def _skip(code: str, position: int, opening: str, closing: str) -> int:
    """The position after a bracket and what it holds, if one opens here."""
    begin = position
    while begin < len(code) and code[begin].isspace():
        begin += 1
    if begin == len(code) or code[begin] != opening:
        return position
    depth = 0
    for index in range(begin, len(code)):
        depth += {opening: 1, closing: -1}.get(code[index], 0)
        if depth == 0:
            return index + 1
    return position


# Types and functions by the version that brought them.
_SINCE = {
    "jacobian": "2.36",
    "sum_to_zero_vector": "2.36",
    "sum_to_zero_matrix": "2.37",
    "row_stochastic_matrix": "2.36",
    "column_stochastic_matrix": "2.36",
    "beta_neg_binomial": "2.36",
    "laplace_marginal": "2.37",
    "laplace_marginal_tol": "2.37",
    "laplace_latent_rng": "2.37",
    "hypergeometric_1F0": "2.37",
}


def newer_features(text: str) -> dict[str, str]:
    """Names in a program that a later version of Stan brought, with that version.

    Args:
        text: The program.

    Example:
        >>> newer_features("parameters { sum_to_zero_vector[3] x; }")
        {'sum_to_zero_vector': '2.36'}
    """
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    words = set(re.findall(r"\w+", code))
    bases = {re.sub(r"_(?:lpdf|lpmf|lcdf|lccdf|cdf|rng)$", "", word) for word in words}
    used = words | bases
    return {name: since for name, since in _SINCE.items() if name in used}
