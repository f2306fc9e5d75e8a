"""Tools for authors: build lessons/ and solutions/ from course/.

source           read a lesson's py:percent file as cells
lesson_tables    tables of lessons that prose includes
bilingual        rules for prose in two languages: same content, terms
pages            rules for pages that have a file for each language
lint             rules for lessons: structure, exercises, lengths
build            build the learner's notebook, and the solution notebook with its outputs
new_lesson       create the files of a new lesson
nbgrader_export  export the lessons as assignments of an nbgrader course
"""
