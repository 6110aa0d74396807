"""Response models whose fields come from the dataclasses they publish.

A field that is added to a dataclass appears in the answers and in the OpenAPI document by itself.
What a model declares in its own body wins over the dataclass: renamed fields and other types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints
from uuid import UUID

from pydantic import BaseModel, ConfigDict, create_model

from reward_server import model

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Model = TypeVar("_Model", bound=BaseModel)

# The modules of the dataclasses import these names for type checkers only.
_NAMES = {**vars(model), "UUID": UUID, "datetime": datetime, "Mapping": Mapping}


class Out(BaseModel):
    """A response, or a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


def publishes(
    source: type[DataclassInstance], *, without: frozenset[str] = frozenset(), **types: object
) -> Callable[[type[_Model]], type[_Model]]:
    """Add the fields of a dataclass to a model, except those that it declares itself.

    `types` has the published types of fields whose own type clients do not see.
    """

    def add(declared: type[_Model]) -> type[_Model]:
        hints = get_type_hints(source, localns=_NAMES)
        names = [one.name for one in fields(source) if one.name not in without]
        added: dict[str, Any] = {
            name: (types.get(name, hints[name]), ...)
            for name in names
            if name not in declared.model_fields
        }
        return create_model(
            declared.__name__,
            __base__=declared,
            __doc__=declared.__doc__,
            __module__=declared.__module__,
            **added,
        )

    return add
