"""Compares release's epsilons and noise with those of other implementations; `make test-python` runs it.

    check.py WITNESS     the example `witness` of the crate `release`, built

1. Epsilon of rho-zCDP at a delta: dp-accounting's Renyi accountant, whose RDP at order alpha is alpha rho, must give the
   same; its exact accountant of the (discrete) Gaussian mechanism of that rho must give no more, and not much less.
2. The law of noise: draws of both samplers of the crate, of OpenDP's discrete Gaussian, and the exact law, by chi-square.
"""

import math
import subprocess
import sys

import numpy
import opendp.prelude as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy import stats

DRAWS = 100_000
# A right program fails once in 10,000 runs at each of about ten comparisons.
LEVEL = 1e-4
ORDERS = 1 + numpy.exp(numpy.arange(-12, 12, 0.001))

dp.enable_features("contrib")
failures = []


def check(what, ok, said):
    print(f"{'ok    ' if ok else 'FAILED'} {what}: {said}")
    if not ok:
        failures.append(what)


def ours(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True)
    return done.stdout.split("\n")[:-1]


def epsilons():
    for text, rho in [("1/100", 0.01), ("1/10", 0.1), ("11/100", 0.11), ("1/2", 0.5), ("2", 2.0)]:
        for delta in [1e-4, 1e-6, 1e-9]:
            found = float(ours("epsilon", text, delta)[0])
            renyi, _ = rdp.compute_epsilon(ORDERS, ORDERS * rho, delta)
            check(f"epsilon of rho {text} at {delta}", abs(found / renyi - 1) < 1e-3, f"{found:.5f}, dp-accounting {renyi:.5f}")
            sigma = math.sqrt(0.5 / rho)
            exact = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4).get_epsilon_for_delta(delta)
            check("  of the Gaussian mechanism itself", 0.8 * found < exact <= found + 1e-3, f"{exact:.5f}")
    # sigma^2 = 5 at a sensitivity of 1 is rho 1/10.
    discrete = pld.from_discrete_gaussian_mechanism(math.sqrt(5), value_discretization_interval=1e-4)
    found, exact = float(ours("epsilon", "1/10", 1e-6)[0]), discrete.get_epsilon_for_delta(1e-6)
    check("  of the discrete Gaussian mechanism", 0.8 * found < exact <= found + 1e-3, f"{found:.5f} and {exact:.5f}")


def cells(sigma2):
    """Values with at least 20 expected draws each, tails apart, and the exact law's probabilities of them."""
    width = int(12 * math.sqrt(sigma2)) + 12
    values = numpy.arange(-width, width + 1)
    law = numpy.exp(-(values.astype(float) ** 2) / (2 * sigma2))
    law /= law.sum()
    kept = values[law * DRAWS >= 20]
    inner = law[(values >= kept[0]) & (values <= kept[-1])]
    tail = (1 - inner.sum()) / 2
    return kept[0], kept[-1], numpy.concatenate([[tail], inner, [tail]])


def counts(draws, low, high):
    at = numpy.clip(numpy.array(draws) - low + 1, 0, high - low + 2)
    return numpy.bincount(at, minlength=high - low + 3)


def law(name, draws, others, sigma2):
    low, high, expected = cells(sigma2)
    mine, theirs = counts(draws, low, high), counts(others, low, high)
    # The tails may expect fewer: they go with their neighbours.
    fold = lambda c: numpy.concatenate([[c[0] + c[1]], c[2:-2], [c[-2] + c[-1]]])
    mine, theirs, expected = fold(mine), fold(theirs), fold(expected)
    p = stats.chisquare(mine, expected * len(draws)).pvalue
    check(f"{name} against the exact law", p > LEVEL, f"p = {p:.4f}, {len(mine)} cells")
    p = stats.chisquare(theirs, expected * len(others)).pvalue
    check("  OpenDP against the exact law", p > LEVEL, f"p = {p:.4f}")
    p = stats.chi2_contingency([mine, theirs])[1]
    check("  against OpenDP", p > LEVEL, f"p = {p:.4f}")
    ratio = numpy.var(draws) / numpy.var(others)
    # Standard error of a ratio of variances: sqrt(2 (2 / n)).
    check("  variance against OpenDP's", abs(ratio - 1) < 4 * 2 / math.sqrt(DRAWS), f"ratio {ratio:.4f}")


def opendp_draws(sigma2):
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=math.sqrt(sigma2))([0] * DRAWS)


def laws():
    for text, sigma2 in [("1/2", 0.5), ("17/3", 17 / 3), ("400", 400.0)]:
        draws = [int(line) for line in ours("gaussian", text, DRAWS)]
        law(f"sampler of sigma^2 {text}", draws, opendp_draws(sigma2), sigma2)
    for arguments in [(1, 1, "1/8"), (10, 2, "2/25"), (200, 2, "2/25"), (40_000, 2, "3/200")]:
        first, *draws = ours("coins", *arguments, DRAWS)
        p, q = (first.split()[1].split("/") + ["1"])[:2]
        sigma2 = int(p) / int(q)
        law(f"coins, (D, c, rho) {arguments}", [int(line) for line in draws], opendp_draws(sigma2), sigma2)


epsilons()
laws()
if failures:
    sys.exit(f"{len(failures)} comparisons failed: " + "; ".join(failures))
