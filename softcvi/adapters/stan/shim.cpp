// A small C interface to one Stan program, linked with the C++ that stanc writes for it.
// Compiled once for all programs, since it takes as long as half a program does.
//
// Rows of unconstrained parameters go in, log densities (normalising constants and
// Jacobian included), gradients or constrained values come out, always in double
// precision. Every thread gets a tape of its own, so any thread may call.

#include <stan/io/json/json_data.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);

#define SOFTCVI_EXPORT extern "C" __attribute__((visibility("default")))

namespace softcvi {

using stan::math::var;

// Calls of the functions that solvers integrate, in the row that this thread evaluates.
// Threads of Stan's own have no limit.
thread_local uint64_t calls = 0;
thread_local uint64_t limit = std::numeric_limits<uint64_t>::max();

struct Program {
  std::unique_ptr<stan::model::model_base> model;
  std::string names;
  std::mutex lock;
  std::string message;  // what Stan said when it last refused a point
  double best = -std::numeric_limits<double>::infinity();
  uint64_t calls_at_best = 0;
  uint64_t overruns = 0;
};

// Far from the posterior a differential equation may take millions of steps, and a
// search for a start looks far. A point that needs fifty times the calls of the best
// point so far is not worth them. As long as there is no such point, patience grows.
void begin_counting(Program& program) {
  std::lock_guard<std::mutex> guard(program.lock);
  calls = 0;
  limit = std::isinf(program.best)
              ? 300'000 * (1 + program.overruns)
              : std::max<uint64_t>(100'000, 50 * program.calls_at_best);
}

void end_counting(Program& program, double value) {
  const uint64_t taken = calls, allowed = limit;
  limit = std::numeric_limits<uint64_t>::max();
  if (taken == 0)
    return;
  std::lock_guard<std::mutex> guard(program.lock);
  if (taken > allowed)
    ++program.overruns;
  else if (std::isfinite(value) && value > program.best) {
    program.best = value;
    program.calls_at_best = taken;
  }
}

void note(Program& program, const char* what) {
  std::lock_guard<std::mutex> guard(program.lock);
  program.message = what;
}

std::string joined_names(const stan::model::model_base& model) {
  // One line per block: parameters, transformed parameters, generated quantities.
  std::ostringstream out;
  size_t written = 0;
  for (int block = 0; block < 3; ++block) {
    std::vector<std::string> names;
    model.constrained_param_names(names, block > 0, block > 1);
    for (size_t i = written; i < names.size(); ++i)
      out << (i > written ? " " : "") << names[i];
    written = names.size();
    out << "\n";
  }
  return out.str();
}

double log_density(Program& program, const double* row, size_t size, double* gradient) {
  const auto& model = *program.model;
  if (gradient == nullptr) {
    Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(row, size);
    return model.log_prob_jacobian(x, nullptr);
  }
  stan::math::nested_rev_autodiff tape;
  Eigen::Matrix<var, -1, 1> x(size);
  for (size_t i = 0; i < size; ++i)
    x[i] = row[i];
  var value = model.log_prob_jacobian(x, nullptr);
  stan::math::grad(value.vi_);
  for (size_t i = 0; i < size; ++i)
    gradient[i] = x[i].adj();
  return value.val();
}

// Returns whether the point was refused.
bool evaluate_row(Program& program, const double* row, size_t size, double* value,
                  double* gradient) {
  *value = std::numeric_limits<double>::quiet_NaN();
  begin_counting(program);
  try {
    *value = log_density(program, row, size, gradient);
    if (std::isnan(*value))
      note(program, "the log density is not a number");
  } catch (const std::exception& error) {
    note(program, error.what());
  } catch (...) {
    note(program, "unknown error");
  }
  end_counting(program, *value);
  if (!std::isnan(*value))
    return false;
  *value = -std::numeric_limits<double>::infinity();
  if (gradient != nullptr)
    std::fill(gradient, gradient + size, 0.0);
  return true;
}

// A seed from the draw itself: equal seeds give different draws different replicates.
uint64_t seed_of(const double* row, size_t size, uint64_t seed) {
  uint64_t hash = 1469598103934665603ULL ^ seed;
  const auto* bytes = reinterpret_cast<const unsigned char*>(row);
  for (size_t i = 0; i < size * sizeof(double); ++i)
    hash = (hash ^ bytes[i]) * 1099511628211ULL;
  return hash;
}

bool constrain_row(Program& program, const double* row, size_t size, uint64_t seed,
                   double* out, size_t width) {
  std::fill(out, out + width, std::numeric_limits<double>::quiet_NaN());
  begin_counting(program);
  bool refused = true;
  Eigen::VectorXd values;
  try {
    Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(row, size);
    const uint64_t bits = seed_of(row, size, seed);
    stan::rng_t rng = stan::services::util::create_rng(
        static_cast<unsigned int>(bits), static_cast<unsigned int>(bits >> 33) + 1);
    program.model->write_array(rng, x, values, true, true, nullptr);
    refused = false;
  } catch (const std::exception& error) {
    note(program, error.what());
  } catch (...) {
    note(program, "unknown error");
  }
  end_counting(program, std::numeric_limits<double>::quiet_NaN());
  // Generated quantities may fail where parameters do not: what Stan has written by
  // then stands, and the rest is not a number.
  std::copy_n(values.data(), std::min<size_t>(width, values.size()), out);
  return refused;
}

bool unconstrain_row(Program& program, const double* row, size_t width, double* out,
                     size_t size) {
  std::fill(out, out + size, std::numeric_limits<double>::quiet_NaN());
  try {
    Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(row, width);
    Eigen::VectorXd values(size);
    program.model->unconstrain_array(x, values, nullptr);
    std::copy_n(values.data(), size, out);
    return false;
  } catch (const std::exception& error) {
    note(program, error.what());
  } catch (...) {
    note(program, "unknown error");
  }
  return true;
}

// Calls a function of a row number for all rows, on several threads if wanted.
template <typename Function>
int64_t count_over_rows(size_t rows, size_t threads, const Function& refused) {
  threads = std::max<size_t>(1, std::min(threads, rows));
  std::atomic<size_t> next(0);
  std::atomic<int64_t> count(0);
  auto work = [&] {
    stan::math::ChainableStack tape;
    for (size_t i = next++; i < rows; i = next++)
      count += refused(i) ? 1 : 0;
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
  for (auto& thread : others)
    thread.join();
  return count;
}

void copy_text(const std::string& text, char* out, size_t room) {
  if (room == 0)
    return;
  const size_t length = std::min(text.size(), room - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

}  // namespace softcvi

// Called by every function that a solver of differential or algebraic equations calls.
void softcvi_count_call() {
  if (++softcvi::calls > softcvi::limit)
    throw std::domain_error(
        "the solver needs over " + std::to_string(softcvi::limit)
        + " evaluations here, many times those of the best point so far");
}

SOFTCVI_EXPORT void* softcvi_open(const char* json, unsigned int seed, char* message,
                                  size_t room) {
  stan::math::ChainableStack tape;
  std::ostringstream said;
  try {
    std::istringstream in(json);
    stan::json::json_data data(in);
    auto program = std::make_unique<softcvi::Program>();
    program->model.reset(&new_model(data, seed, &said));
    program->names = softcvi::joined_names(*program->model);
    return program.release();
  } catch (const std::exception& error) {
    said << error.what();
  } catch (...) {
    said << "unknown error";
  }
  softcvi::copy_text(said.str(), message, room);
  return nullptr;
}

SOFTCVI_EXPORT void softcvi_close(void* handle) {
  delete static_cast<softcvi::Program*>(handle);
}

SOFTCVI_EXPORT size_t softcvi_size(void* handle) {
  return static_cast<softcvi::Program*>(handle)->model->num_params_r();
}

SOFTCVI_EXPORT const char* softcvi_names(void* handle) {
  return static_cast<softcvi::Program*>(handle)->names.c_str();
}

SOFTCVI_EXPORT void softcvi_message(void* handle, char* message, size_t room) {
  auto& program = *static_cast<softcvi::Program*>(handle);
  std::lock_guard<std::mutex> guard(program.lock);
  softcvi::copy_text(program.message, message, room);
}

SOFTCVI_EXPORT int64_t softcvi_log_density(void* handle, size_t rows, const double* x,
                                           double* values, double* gradients,
                                           size_t threads) {
  auto& program = *static_cast<softcvi::Program*>(handle);
  const size_t size = program.model->num_params_r();
  return softcvi::count_over_rows(rows, threads, [&](size_t i) {
    double* gradient = gradients == nullptr ? nullptr : gradients + i * size;
    return softcvi::evaluate_row(program, x + i * size, size, values + i, gradient);
  });
}

// How much a log density with its gradient takes, counted and not timed: nodes of the
// tape with a derivative of their own, those without, and calls by solvers. Returns
// whether the point was refused.
SOFTCVI_EXPORT int softcvi_work(void* handle, const double* x, double* counts) {
  auto& program = *static_cast<softcvi::Program*>(handle);
  const size_t size = program.model->num_params_r();
  stan::math::ChainableStack tape;
  softcvi::begin_counting(program);
  int refused = 1;
  try {
    stan::math::nested_rev_autodiff nested;
    Eigen::Matrix<softcvi::var, -1, 1> row(size);
    for (size_t i = 0; i < size; ++i)
      row[i] = x[i];
    const double value = program.model->log_prob_jacobian(row, nullptr).val();
    const auto& nodes = *stan::math::ChainableStack::instance_;
    counts[0] = nodes.var_stack_.size();
    counts[1] = nodes.var_nochain_stack_.size();
    counts[2] = softcvi::calls;
    refused = std::isfinite(value) ? 0 : 1;
  } catch (...) {
  }
  softcvi::end_counting(program, std::numeric_limits<double>::quiet_NaN());
  return refused;
}

SOFTCVI_EXPORT int64_t softcvi_constrain(void* handle, size_t rows, const double* x,
                                         const uint64_t* seeds, double* out,
                                         size_t width, size_t threads) {
  auto& program = *static_cast<softcvi::Program*>(handle);
  const size_t size = program.model->num_params_r();
  return softcvi::count_over_rows(rows, threads, [&](size_t i) {
    return softcvi::constrain_row(program, x + i * size, size, seeds[i],
                                  out + i * width, width);
  });
}

SOFTCVI_EXPORT int64_t softcvi_unconstrain(void* handle, size_t rows,
                                           const double* constrained, size_t width,
                                           double* out) {
  auto& program = *static_cast<softcvi::Program*>(handle);
  const size_t size = program.model->num_params_r();
  return softcvi::count_over_rows(rows, 1, [&](size_t i) {
    return softcvi::unconstrain_row(program, constrained + i * width, width,
                                    out + i * size, size);
  });
}
