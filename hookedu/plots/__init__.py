"""Matplotlib figures of tensors, recordings, timelines and autograd graphs.

maps       plot_feature_maps, plot_gradients
summaries  plot_stats, plot_timeline
mosaic     the pixels of a mosaic of feature maps
graph      ``plot_graph`` and ``plot_sharing``
"""
