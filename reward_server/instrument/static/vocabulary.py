"""The methods and attributes that mean something to the static finder, by what they do."""

from __future__ import annotations

PREDICT_METHODS = frozenset(
    {"predict", "predict_proba", "decision_function", "predict_log_proba", "forecast"}
    | {"predict_on_batch", "predict_generator", "get_preds"}
)
FIT_METHODS = frozenset(
    {"fit", "partial_fit", "fit_regularized", "fit_generator"}
    | {"fit_one_cycle", "fine_tune", "fit_predict"}
)
SCORE_METHODS = frozenset({"score", "evaluate", "evaluate_generator"})
BATCH_METHODS = frozenset({"train_on_batch", "test_on_batch"})
STEP_METHODS = frozenset({"apply_gradients", "minimize", "backward", "manual_backward"})
TRAINER_METHODS = frozenset({"evaluate", "validate", "test"})
RECORD_METHODS = frozenset({"evals_result", "get_evals_result"})
CALLBACK_METHODS = frozenset({"optimize", "apply", "progress_apply", "applymap"})
SHOW_METHODS = frozenset({"info", "debug", "warning", "write", "log", "append"})
ESTIMATOR_METHODS = FIT_METHODS | PREDICT_METHODS | SCORE_METHODS
READ_METHODS = frozenset({"read", "readline", "readlines"})
PATH_READ_METHODS = frozenset({"read_text", "read_bytes"})
IMAGE_FLOW_METHODS = frozenset({"flow_from_directory", "flow_from_dataframe"})
REDUCE_METHODS = frozenset({"mean", "sum"})
STATISTICS = frozenset({"mean", "std", "var", "median", "min", "max", "quantile", "mode"})
SELF_METHODS = frozenset({"set_params", "to", "cuda", "cpu", "float", "double", "half", "eval"})
GROW_METHODS = frozenset({"append", "extend", "add", "insert", "update", "setdefault"})
JOIN_METHODS = frozenset({"append", "concat", "vstack"})
MODEL_ATTRIBUTES = frozenset({"best_estimator_", "estimators_", "named_steps", "module"})
HELDOUT_ATTRIBUTES = frozenset(
    {"best_score_", "oob_score_", "best_score", "cv_results_", "scores_", "mse_path_"}
    | {"validation_score_", "validation_scores_", "best_validation_score_", "cv_values_"}
)
TRAINING_ATTRIBUTES = frozenset(
    {"loss_", "best_loss_", "loss_curve_", "train_score_", "training_loss"}
    | {"mse_resid", "llf", "rsquared", "rsquared_adj", "prsquared", "ssr", "deviance"}
)
STUDY_ATTRIBUTES = frozenset({"best_value", "best_trial", "best_values"})
RECORD_ATTRIBUTES = frozenset({"history", "evals_result_"})
FORGEABLE = (
    ESTIMATOR_METHODS
    | RECORD_METHODS
    | TRAINER_METHODS
    | HELDOUT_ATTRIBUTES
    | TRAINING_ATTRIBUTES
    | STUDY_ATTRIBUTES
    | RECORD_ATTRIBUTES
)
PLAIN_ATTRIBUTES = frozenset({"shape", "columns", "dtypes", "size", "ndim"})
