"""The transductive methods, one file each: first the numbers, then the estimator."""
