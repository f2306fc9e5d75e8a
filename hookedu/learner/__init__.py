"""Functions that learners call in a notebook, and the command that opens the course.

checking    check, hint and solution
progress    progress: how many exercises are solved, and which one is next
course_map  course_map: a diagram of which lesson builds on which
lab         `hookedu lab`: hand out the notebooks and open them in JupyterLab
preload     what the kernels of `hookedu lab` import at once
"""
