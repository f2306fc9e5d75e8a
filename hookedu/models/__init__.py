"""Models and data for the lessons.

shapes      a synthetic data set of shapes, and a small network trained to classify them
pretrained  torchvision models with trained weights, where these are available
ranks       scripts run in several processes, for distributed training
"""
