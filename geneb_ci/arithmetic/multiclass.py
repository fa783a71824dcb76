"""Bounds between accuracy, macro-F1 and MCC that hold for any number and any sizes of classes.

For tasks of more than two classes the class sizes are not known, nor even how many classes there
are. What holds for all of them is weak, but true. With n sequences, e errors, A = 1 - e/n, x = e/n:

1.  A = 1, F1 = 1 and MCC = 1 hold together or not at all, if two classes or more are in the test.

2.  MCC <= 1 / (2 - A), and MCC <= 0 where A = 0.
    With t, p the shares of true and predicted classes, MCC = (A - t.p) / sqrt((1-|t|^2)(1-|p|^2))
    (Gorodkin 2004). Write t = A m + x b and p = A m + x g: m the right predictions, b and g the
    classes errors come from and go to. With B = 1 - m.b, G = 1 - m.g, Q = 1 - |m|^2, the numerator
    is at most A^2 Q + A x (B + G - 1), the root at least A^2 Q + 2 A x sqrt(B G) by Cauchy-Schwarz.
    So the bound follows from A Q + (1 + x)(B + G - 1) <= 2 sqrt(B G). Let G <= B; m.g <= |m| gives
    Q <= G (2 - G). The claim is linear in x. At x = 0 it is worst for B = 1 and becomes
    (s - 1)^2 (s + 2) >= 0 with s = sqrt(G); at x = 1 it is B + G - 1 <= sqrt(B G), true in [0, 1].

3.  MCC >= A - 1.
    With t and p fixed, MCC rises with A by 1 / sqrt(...) >= 1, so the least A decides. It is 0,
    where MCC >= -1 says it, or t_k + p_k - 1 for one class k. There, with X = 1 - t_k and
    Y = 1 - p_k, X + Y = x, MCC^2 <= X Y / ((1 - X)(1 - Y)) <= (x / (2 - x))^2 <= x^2.

4.  F1 <= 1 - 2 e / (K n) for K classes that occur in truth or prediction. F1 = 1 - (1/K) sum d/S
    with d the errors that touch a class and S its true and predicted number. By Cauchy-Schwarz
    sum d/S >= (sum sqrt d)^2 / 2n, and (sum sqrt d)^2 >= 4 e, as d <= e and the d add up to 2 e.
    K <= n + e, as each class has a right prediction or one of the 2 e ends of errors.

5.  F1 >= A / K, by the same step with the right predictions in place of the errors.

A mean over seeds obeys what is linear in A, or bent to the right side (Jensen): 3 as it is; 2 by
its chord, MCC <= (1 + A) / 2; 4 by its chord, F1 <= 1 - x / n; 5 as it is.
"""

from typing import NamedTuple


class Bounds(NamedTuple):
    """Least and greatest MCC and macro-F1."""

    mcc_low: float
    mcc_high: float
    f1_low: float
    f1_high: float


def single(n: int, right: int) -> Bounds:
    """Give the bounds of one matrix on n sequences with a number of right predictions."""
    errors = n - right
    if not errors:
        return Bounds(1.0, 1.0, 1.0, 1.0)
    if not right:
        return Bounds(-1.0, 0.0, 0.0, 0.0)
    classes = n + errors
    return Bounds(
        -errors / n, n / (n + errors), right / n / classes, 1.0 - 2 * errors / (classes * n)
    )


def mean(n: int, right: int, repeats: int) -> Bounds:
    """Give the bounds of a mean over `repeats` matrices with so many right predictions in all."""
    total = n * repeats
    errors = total - right
    if not errors or not right:
        return single(n, right // repeats)
    acc = right / total
    return Bounds(acc - 1.0, (1.0 + acc) / 2, acc / (n * (2.0 - acc)), 1.0 - (1.0 - acc) / n)
