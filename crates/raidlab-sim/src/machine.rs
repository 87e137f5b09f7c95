//! A whole machine built from an experiment's cell, as a target; what limits it.
