"""The paper's experiments, on the public interface alone."""
