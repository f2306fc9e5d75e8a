"""Matplotlib figures of tensors, recordings, timelines and autograd graphs.

maps       plot_feature_maps, plot_gradients
summaries  plot_stats, plot_timeline
layouts    what the dimensions of a tensor are: channels, tokens, attention heads
mosaic     the pixels of a mosaic of feature maps, or of a matrix of tokens
graph      ``plot_graph`` and ``plot_sharing``
"""
