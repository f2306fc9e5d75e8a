"""Models and data for the lessons.

shapes      a synthetic data set of shapes, and a small network trained to classify them
stories     a small language in which context fixes words, and a transformer trained on it
ward        small training runs, healthy ones and ones with a known fault
pretrained  torchvision models with trained weights, where these are available
ranks       scripts run in several processes, for distributed training
"""
