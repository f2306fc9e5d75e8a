"""From course/ to lessons/ and solutions/.

source           a lesson's py:percent file as cells
lesson_tables    the tables of lessons that prose asks for
lint             what a lesson must keep to: shape, languages, terms
build            the learner's notebook, and the answered one with its outputs
new_lesson       the files of a lesson that is to be written
nbgrader_export  the lessons as assignments of an nbgrader course
"""
