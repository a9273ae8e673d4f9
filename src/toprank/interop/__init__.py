"""The push inside other libraries: LightGBM, XGBoost, torch.

Nothing is imported before it is used; a missing library is asked for by name.

>>> from toprank.interop.lightgbm import push_objective
>>> push_objective(p=4.0)
push_objective(p=4.0, price='power', loss='exponential')
"""
