"""The parameters of the synthetic survey: where people in Île-de-France live, who they are, and where they go.

They are rough public knowledge, calibrated so that the trips of `odkanon.sample.survey` have the totals in the paper.
Shares are relative; they need not sum to anything.
"""

import numpy as np

# Where people live (homes), and where they work and go out (jobs): normal around each point, `spread` in km.
PLACES = np.array(
    [
        ("Paris, right bank", 48.868, 2.355, 2.7, 222, 272),
        ("Paris, left bank", 48.838, 2.335, 2.5, 172, 142),
        ("La Défense", 48.889, 2.250, 1.8, 30, 60),
        ("inner ring", 48.855, 2.360, 9.0, 200, 160),
        ("outer suburbs", 48.850, 2.350, 19.0, 170, 130),
        ("countryside", 48.700, 2.550, 38.0, 70, 40),
        ("Saint-Denis", 48.936, 2.357, 2.0, 20, 30),
        ("Créteil", 48.790, 2.455, 2.2, 18, 22),
        ("Versailles", 48.802, 2.130, 2.2, 16, 20),
        ("Roissy", 49.005, 2.555, 2.5, 4, 24),
        ("Saclay and Massy", 48.725, 2.240, 3.0, 16, 26),
        ("Marne-la-Vallée", 48.845, 2.640, 4.0, 20, 24),
        ("Cergy", 49.037, 2.063, 2.8, 16, 18),
        ("Évry", 48.628, 2.440, 2.8, 16, 18),
        ("Argenteuil", 48.947, 2.247, 2.0, 12, 8),
        ("Saint-Quentin-en-Yvelines", 48.775, 2.015, 2.8, 12, 16),
        ("Meaux", 48.960, 2.885, 2.0, 8, 7),
        ("Melun", 48.540, 2.655, 2.4, 9, 9),
        ("Mantes-la-Jolie", 48.990, 1.715, 2.2, 8, 6),
        ("Fontainebleau", 48.405, 2.700, 1.8, 4, 4),
        ("Rambouillet", 48.644, 1.830, 1.6, 3, 3),
        ("Étampes", 48.434, 2.161, 1.6, 3, 2),
        ("Provins", 48.559, 3.299, 1.4, 2, 2),
    ],
    dtype=[("name", "U32"), ("lat", "f8"), ("lon", "f8"), ("spread", "f8"), ("homes", "f8"), ("jobs", "f8")],
)
CENTRAL_PLACES = 3  # the first rows, where some categories live more often than others: see `pull`

# By category: share of participants, relative weight, attraction of the centre, share of women, probability that a
# weekday is spent at work or school, and shares of the age bands. The paper only numbers its categories; the comments
# are inferred from its text. With these shares and weights, the segments in central Paris are close to the sizes and
# mean weights that the paper's tables imply.
CATEGORIES = np.array(
    [
        ("Cat. 1", 37, 0.484, 1.0, 0.34, 0.80, (0, 106, 251, 289, 252, 94, 8)),  # craft and trade
        ("Cat. 2", 334, 0.432, 1.1, 0.45, 0.72, (0, 178, 272, 280, 203, 63, 4)),  # executives
        ("Cat. 3", 149, 0.703, 1.0, 0.55, 0.80, (5, 180, 276, 283, 214, 40, 2)),  # intermediate
        ("Cat. 4", 131, 0.874, 0.9, 0.67, 0.82, (10, 167, 237, 287, 238, 59, 2)),  # employees
        ("Cat. 5", 40, 0.838, 0.7, 0.18, 0.84, (10, 169, 239, 290, 240, 50, 2)),  # workers
        ("Cat. 6", 102, 0.578, 0.9, 0.55, 0.0, (0, 0, 0, 3, 47, 597, 353)),  # retired
        ("Cat. 7", 147, 0.56, 1.2, 0.53, 0.74, (201, 757, 37, 4, 1, 0, 0)),  # students
        ("Cat. 8", 64, 0.473, 1.0, 0.62, 0.0, (16, 221, 246, 230, 192, 78, 17)),  # other inactive
    ],
    dtype=[
        ("name", "U8"),
        ("share", "f8"),
        ("weight", "f8"),
        ("pull", "f8"),
        ("women", "f8"),
        ("commute", "f8"),
        ("ages", "f8", 7),
    ],
)
AGE_BANDS = np.array([16, 20, 30, 40, 50, 60, 70, 81])
AGE_WEIGHT = np.array([3.032, 1.065, 1.686, 1.731, 1.732, 2.102, 1.903])
WOMAN_WEIGHT = 1.07

# The shares of trips to each anchor of a person. Trips end around the anchor: close to it at home, far from it on
# errands, which is why so few trips share both cells.
HOME, HABIT, ERRAND = 0, 5, 8
ANCHOR_SHARES = np.array(
    [  # home work station station centre habit place outing errand errand
        [0, 66, 15, 2, 2, 11, 2, 2, 2, 1],  # first trip of a working day
        [8, 28, 5, 10, 3, 18, 12, 3, 3, 4],  # later trips of a working day
        [0, 0, 12, 0, 6, 70, 2, 16, 7, 1],  # first trip of any other day
        [17, 0, 10, 4, 5, 54, 2, 10, 6, 1],  # later trips of any other day
    ]
)
SCATTER_KM = np.array([0.014, 0.014, 0.016, 0.016, 0.035, 0.016, 0.016, 0.025, 0.9, 0.6])
PAUSE = np.array([3.0, 12.0, 0.2, 0.2, 2.0, 1.5, 1.0, 3.0, 0.6, 0.6])  # relative length of a stay

# The purpose of a trip, by its anchor. For most students, work is school.
PURPOSES = np.array(["home", "work", "study", "shopping", "errand", "leisure"])
PURPOSE_SHARES = np.array(
    [  # home work study shopping errand leisure
        [1, 0, 0, 0, 0, 0],  # home
        [0, 1, 0, 0, 0, 0],  # work
        [0, 5, 5, 25, 35, 30],  # station near home
        [0, 40, 5, 20, 20, 15],  # station near work
        [0, 10, 0, 45, 10, 35],  # centre
        [0, 0, 0, 40, 35, 25],  # habit
        [0, 20, 5, 25, 25, 25],  # place near work
        [0, 5, 0, 15, 10, 70],  # outing
        [0, 0, 0, 35, 45, 20],  # errand near home
        [0, 45, 0, 15, 30, 10],  # errand near work
    ]
)
STUDENTS, WORK, AT_SCHOOL = 6, 1, 0.9  # a row of CATEGORIES, a purpose, and the share of it that is school

# The mode of a trip, by its length and by whether both ends are near the centre.
MODES = np.array(["walk", "bike", "transit", "car", "motorcycle"])
MODE_KM = np.array([1.0, 3.0, 8.0])
CENTRE_KM = 6.0
MODE_SHARES = np.array(
    [  # walk bike transit car motorcycle
        [89, 4, 4, 2, 1],  # in the centre, up to 1 km
        [55, 10, 26, 6, 3],  # 3 km
        [9, 10, 63, 13, 5],  # 8 km
        [0, 4, 72, 19, 5],  # further
        [80, 3, 2, 14, 1],  # elsewhere, up to 1 km
        [40, 4, 11, 43, 2],
        [4, 3, 28, 63, 2],
        [0, 0, 40, 58, 2],
    ]
)
