"""Tensors, Recordings, Timelines and autograd graphs as matplotlib figures.

figures   plot_feature_maps, plot_gradients, plot_stats, plot_timeline
mosaic    the pixels of a mosaic of feature maps
graph     plot_graph and plot_sharing
"""
