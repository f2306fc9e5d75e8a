"""What decides about an answer, one module per exercise: checks/lesson_NN/name.py defines `EXERCISE`.

Evaluated where the learner's code never ran. The grader's sandbox does not contain this folder.
"""
