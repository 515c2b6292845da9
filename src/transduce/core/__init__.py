"""What every room may use: samples, answers, guarantees, checks, kernels, linear algebra."""
