"""What a learner calls, and what is kept for them.

checking    check, hint and solution
progress    how many exercises are solved, and which is next
course_map  which lesson builds on which, as a picture
lab         `hookedu lab`: notebooks handed out and JupyterLab opened on them
"""
