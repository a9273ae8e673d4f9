"""A convex function with a wall, as solvers see a problem."""

import numpy as np


class Wall:
    """-log(1 - x_1) - x_1 + |x - target|^2 / 2: infinite from x_1 = 1 on, as solvers see it."""

    scale, alpha, penalty, size = 1.0, 0.0, 0.0, 2
    gradients_first, hessian_repaid_by, has_curvature, has_sample = 0, 100, True, False
    bend_at_zero, close_estimates = 0.0, False
    target = np.array([0.9, -2.0])
    fewer_rows = False

    def value_grad(self, coef):
        if coef[0] >= 1:
            return np.inf, np.zeros(2)
        off = coef - self.target
        wall = np.array([1 / (1 - coef[0]) - 1, 0.0])
        return -np.log(1 - coef[0]) - coef[0] + off @ off / 2, wall + off

    def hessian(self, coef, exact=True):
        return np.diag([1.0, 1.0]) + np.diag([(1 - coef[0]) ** -2, 0.0])

    def coarse(self):
        return None

    def runs_away(self, coef):
        return False

    def column_scale(self):
        return np.array([100.0, 1.0])  # the first step goes far over the wall

    def gradient_sizes(self, coef):
        return None
