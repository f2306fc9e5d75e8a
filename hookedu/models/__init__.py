"""Models and data that the lessons use.

shapes      pictures of shapes and the small trained network that tells them apart
pretrained  a torchvision model with weights, where they can be had
ranks       functions run in several processes of one gloo group
"""
