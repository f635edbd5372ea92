"""Mechanisms: algorithms that answer queries through a curator. None of them holds the data."""

from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Mechanism
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.mechanisms.reconstruction import matrix_mechanism_variances

__all__ = [
    "CacheReconstruct",
    "Independent",
    "Laplace",
    "Mechanism",
    "PrivateMultiplicativeWeights",
    "matrix_mechanism_variances",
    "seed",
]
