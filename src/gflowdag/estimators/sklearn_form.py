"""What scikit-learn asks of an estimator, without importing it: that takes as long as a small fit.

Parameters are read, set and copied here. Tags, metadata routing and the picture in a notebook are
scikit-learn's own, asked for in its name by whoever has imported it, or by a notebook.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from gflowdag.runtime.keywords import check_keywords

if TYPE_CHECKING:
    from sklearn.utils import Tags


def _of_base_estimator(name: str) -> property:
    """What `BaseEstimator` says of the estimator."""
    return property(lambda self: getattr(_as_base_estimator(self), name))


class SklearnForm:
    """An estimator as scikit-learn knows it; a subclass is a dataclass whose fields are its parameters."""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """In alphabetical order."""
        return sorted(field.name for field in fields(cls) if field.init)  # pyright: ignore[reportArgumentType]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there for scikit-learn, none of them has parameters itself."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name."""
        check_keywords(type(self).__name__, parameters, self.parameter_names())
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def set_fit_request(self, **requests: Any) -> Self:
        """Whether scikit-learn's pipelines pass `interventions` on to `fit`, where they route metadata."""
        _as_base_estimator(self).set_fit_request(**requests)
        return self

    def unfitted(self) -> Self:
        """A new estimator with copies of the parameters, as `sklearn.base.clone` makes it."""
        return type(self)(**copy.deepcopy(self.get_params()))

    def __repr__(self) -> str:
        default = {field.name: field.default for field in fields(self)}  # pyright: ignore[reportArgumentType]
        words = {name: repr(value) for name, value in self.get_params().items()}
        changed = (f"{name}={word}" for name, word in words.items() if word != repr(default[name]))
        return f"{type(self).__name__}({', '.join(changed)})"

    def __dir__(self) -> list[str]:
        # Some attributes come with another package.
        return [name for name in super().__dir__() if hasattr(self, name)]

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)  # pyright: ignore[reportArgumentType]

    get_metadata_routing = _of_base_estimator("get_metadata_routing")
    _get_metadata_request = _of_base_estimator("_get_metadata_request")
    _repr_html_ = _of_base_estimator("_repr_html_")
    _repr_mimebundle_ = _of_base_estimator("_repr_mimebundle_")


def _as_base_estimator(estimator: SklearnForm) -> Any:
    """An instance of scikit-learn's base class with the same parameters, signatures and attributes."""
    twin = object.__new__(_base_estimator_like(type(estimator)))
    twin.__dict__ = estimator.__dict__
    return twin


@cache
def _base_estimator_like(kind: Any) -> type:
    from sklearn.base import BaseEstimator

    same = ("__doc__", "__module__", "__init__", "fit")
    return type(kind.__name__, (BaseEstimator,), {name: getattr(kind, name) for name in same})
