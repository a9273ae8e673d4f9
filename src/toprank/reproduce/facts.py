"""What the papers print, and what was found when their numbers were checked.

Rudin (2009) is "The P-Norm Push", Journal of Machine Learning Research 10; Rudin (2006) its
conference version (COLT); Rudin & Schapire (2009) "Margin-based Ranking and an Equivalence
between AdaBoost and RankBoost", same journal and volume.
"""

from __future__ import annotations

# Tables 1 and 2 hold numbers as they are printed, to keep the digits.

#: Table 1: labels in ascending order of score, scores 1 to 8, p = 4.
TABLE_1_LABELS: dict[str, tuple[int, ...]] = {
    "orig": (-1, 1, -1, 1, -1, -1, 1, 1),
    "swap_on_bottom": (1, -1, -1, 1, -1, -1, 1, 1),
    "swap_on_top": (-1, 1, -1, 1, -1, 1, -1, 1),
}
TABLE_1: dict[str, dict[str, str]] = {
    "orig": {"zero_one": "33", "exponential": "17160.17", "logistic": "430.79"},
    "swap_on_bottom": {"zero_one": "34", "exponential": "72289.39", "logistic": "670.20"},
    "swap_on_top": {"zero_one": "98", "exponential": "130515.09", "logistic": "1212.23"},
}

#: The exponential and logistic columns of Tables 1 and 2 are those of the halved scores.
SCORE_SCALE = {"zero_one": 1.0, "exponential": 0.5, "logistic": 0.5}

#: Table 2: f1 is 14, 13, ..., 1 over 14, f2 is -f1; the pair (f1, f2) for p = 1 to 10.
TABLE_2_LABELS = (1, 1, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, -1, -1)
TABLE_2: dict[str, tuple[tuple[str, str], ...]] = {
    "zero_one": (
        ("25", "24"),
        ("125", "118"),
        ("625", "726"),
        ("3.13e3", "4.88e3"),
        ("1.56e4", "3.38e4"),
        ("7.81e4", "23.56e4"),
        ("3.91e5", "16.48e5"),
        ("1.95e6", "11.53e6"),
        ("9.77e6", "80.71e6"),
        ("4.88e7", "56.50e7"),
    ),
    "exponential": (
        ("50.25", "49.80"),
        ("367.39", "362.35"),
        ("2.73e3", "2.70e3"),
        ("2.056e4", "2.057e4"),
        ("1.56e5", "1.60e5"),
        ("1.20e6", "1.28e6"),
        ("9.34e6", "10.36e6"),
        ("7.29e7", "8.53e7"),
        ("5.72e8", "7.13e8"),
        ("4.50e9", "6.02e9"),
    ),
    "logistic": (
        ("34.34", "34.09"),
        ("170.18", "167.90"),
        ("851.09", "836.46"),
        ("4.29e3", "4.22e3"),
        ("2.18e4", "2.15e4"),
        ("1.114e5", "1.110e5"),
        ("5.72e5", "5.79e5"),
        ("2.96e6", "3.05e6"),
        ("1.53e7", "1.63e7"),
        ("7.98e7", "8.74e7"),
    ),
}
#: From this p on the objective prefers f1.
TABLE_2_REVERSAL = {"zero_one": 3, "exponential": 4, "logistic": 7}

#: The list of Section 3.3: labels from the highest score down, scores 20, 19, ..., 1 over 20.
FIGURE_1_LABELS = (1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, -1, -1)

#: Tables 3 to 5: columns p = 1, 2, 4, 8, 16, 64 and the IR Push.
POWERS = (1, 2, 4, 8, 16, 64)
COLUMNS = ("p = 1", "p = 2", "p = 4", "p = 8", "p = 16", "p = 64", "IR")
MEASURES = ("AUC", "R2", "R4", "R8", "R16", "DCG", "AveR")
TABLE_3: dict[str, tuple[float, ...]] = {
    "AUC": (0.8370, 0.8402, 0.8397, 0.8363, 0.8329, 0.8288, 0.8284),
    "R2": (6.5515, 5.9731, 5.5896, 5.4806, 5.4990, 5.5819, 5.5886),
    "R4": (4.2134, 3.4875, 2.8875, 2.5638, 2.4291, 2.3651, 2.3582),
    "R8": (3.8830, 2.9138, 2.1091, 1.6266, 1.3923, 1.2396, 1.2257),
    "R16": (6.8153, 4.7208, 3.0545, 1.9698, 1.4494, 1.1096, 1.0823),
    "DCG": (1.4022, 1.4048, 1.4066, 1.4084, 1.4087, 1.4087, 1.4087),
    "AveR": (8.1039, 8.5172, 8.6860, 9.6701, 9.7520, 9.7679, 9.7688),
}
TABLE_4: dict[str, tuple[float, ...]] = {
    "AUC": (0.6797, 0.6732, 0.6700, 0.6612, 0.6479, 0.6341, 0.6409),
    "R2": (2.1945, 2.1931, 2.1515, 2.1213, 2.1575, 2.1974, 2.1811),
    "R4": (2.0841, 1.9891, 1.8041, 1.5911, 1.4327, 1.3104, 1.4046),
    "R8": (3.7099, 3.3459, 2.6271, 1.8950, 1.3861, 1.0823, 1.2979),
    "R16": (1.7294, 1.4558, 0.8786, 0.4236, 0.2437, 0.1884, 0.2272),
    "DCG": (13.9197, 14.1308, 14.3261, 14.5902, 14.6916, 14.7903, 14.7169),
    "AveR": (2.9712, 3.1610, 3.3041, 3.5084, 3.5849, 3.6571, 3.6076),
}
TABLE_5: dict[str, tuple[float, ...]] = {
    "AUC": (0.7739, 0.7633, 0.7532, 0.7500, 0.7420, 0.7330, 0.7373),
    "R2": (3222, 3406, 3665, 3799, 3818, 3759, 3847),
    "R4": (294078, 292870, 304457, 307135, 305498, 298611, 304915),
    "R8": (3.9056, 3.5246, 3.3908, 3.2953, 3.2479, 3.3173, 3.2346),
    "R16": (1.1762, 0.9694, 0.8337, 0.8028, 0.7801, 0.8816, 0.7788),
    "DCG": (3.6095, 3.6476, 3.6757, 3.6858, 3.6977, 3.6671, 3.6931),
    "AveR": (0.5241, 0.5644, 0.6022, 0.6124, 0.6258, 0.6012, 0.6250),
}

#: The last column of Tables 3 to 5, and the columns that its words stand for.
BEST_3 = {"AUC": "small p", "R2": "medium p", **dict.fromkeys(MEASURES[2:], "IR / large p")}
BEST_4 = {"AUC": "small p", "R2": "med/lg p", **dict.fromkeys(MEASURES[2:], "IR / large p")}
BEST_5 = {
    "AUC": "small p",
    "R2": "small p",
    "R4": "small/med p",
    **dict.fromkeys(MEASURES[3:], "IR / large p"),
}
BEST_COLUMNS: dict[str, tuple[str, ...]] = {
    "small p": COLUMNS[:3],
    "small/med p": COLUMNS[:4],
    "medium p": COLUMNS[2:5],
    "med/lg p": COLUMNS[2:],
    "IR / large p": COLUMNS[4:],
}

#: Figure 8: a and p of the inequality of Lemma 7.
FIGURE_8 = {"a": 0.4, "p": 4.0}

#: The matrix of Rudin, Daubechies & Schapire (2004) that Theorem 6 of Rudin & Schapire leans on.
MARGIN_8X8: tuple[tuple[int, ...], ...] = (
    (-1, 1, 1, 1, 1, -1, -1, 1),
    (-1, 1, 1, -1, -1, 1, 1, 1),
    (1, -1, 1, 1, 1, -1, 1, 1),
    (1, -1, 1, 1, -1, 1, 1, 1),
    (1, -1, 1, -1, 1, 1, 1, -1),
    (1, 1, -1, 1, 1, 1, 1, -1),
    (1, 1, -1, 1, 1, 1, -1, 1),
    (1, 1, 1, 1, -1, -1, 1, -1),
)
LARGEST_MARGIN_8X8 = 3 / 8
RANKBOOST_MARGIN_8X8 = 1 / 3
