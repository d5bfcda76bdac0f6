"""Shopping carts. Each change says why it was made, so that the log can tell why a product is in the cart, or no longer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from lockstep.commands.aggregate import Aggregate, Command, Event, Read, Rejection, State

Name = Annotated[str, Field(min_length=1, max_length=100)]
# Nobody buys more of a product at once; whoever types more has mistyped.
MOST = 1_000
Quantity = Annotated[int, Field(ge=1, le=MOST)]


class Cart(State):
    """A cart: the quantity of each product in it, and whether it was checked out."""

    quantities: Mapping[str, int] = {}
    checked_out: bool = False


class CartCommand(Command):
    """A command for a cart. ``because`` says what made the customer do it, such as ``search`` or ``too expensive``."""

    cart_id: Name
    because: Annotated[str, Field(max_length=200)] = ""

    @property
    def key(self) -> str:
        """The cart."""
        return self.cart_id

    @property
    def entity(self) -> str:
        """The cart."""
        return self.cart_id


class Add(CartCommand):
    """Put a product into the cart; one that is in it becomes more."""

    type: Literal["add"] = "add"
    product_id: Name
    quantity: Quantity = 1


class Remove(CartCommand):
    """Take a product out of the cart, all of it."""

    type: Literal["remove"] = "remove"
    product_id: Name


class SetQuantity(CartCommand):
    """Have so many of a product that is in the cart."""

    type: Literal["set_quantity"] = "set_quantity"
    product_id: Name
    quantity: Quantity


class CheckOut(CartCommand):
    """Buy what is in the cart. It does not change after that."""

    type: Literal["check_out"] = "check_out"


class CartEvent(Event):
    """An event of a cart."""

    cart_id: str
    because: str = ""

    @property
    def entities(self) -> tuple[str, ...]:
        """The cart."""
        return (self.cart_id,)


class Added(CartEvent):
    """So many of a product came into the cart."""

    type: Literal["added"] = "added"
    product_id: str
    quantity: int


class Removed(CartEvent):
    """A product was taken out."""

    type: Literal["removed"] = "removed"
    product_id: str


class QuantitySet(CartEvent):
    """There are so many of a product now."""

    type: Literal["quantity_set"] = "quantity_set"
    product_id: str
    quantity: int


class CheckedOut(CartEvent):
    """The cart was bought."""

    type: Literal["checked_out"] = "checked_out"


AnyCommand = Add | Remove | SetQuantity | CheckOut
AnyEvent = Added | Removed | QuantitySet | CheckedOut


def decide(read: Read[Cart], command: AnyCommand) -> Sequence[AnyEvent] | Rejection:
    """A cart that was checked out stays as it is, and only what is in a cart can be changed."""
    cart = read(command.cart_id)
    cart_id, because = command.cart_id, command.because
    if cart.checked_out:
        return Rejection("checked_out", "the cart was checked out")
    if isinstance(command, CheckOut):
        return (
            [CheckedOut(cart_id=cart_id, because=because)]
            if cart.quantities
            else Rejection("empty", "there is nothing in the cart")
        )
    product, quantity = command.product_id, cart.quantities.get(command.product_id, 0)
    if isinstance(command, Add):
        if quantity + command.quantity > MOST:
            return Rejection("too_many", f"the cart would have more than {MOST:,} of {product}")
        return [Added(cart_id=cart_id, because=because, product_id=product, quantity=command.quantity)]
    if not quantity:
        return Rejection("not_in_cart", f"{product} is not in the cart")
    if isinstance(command, Remove):
        return [Removed(cart_id=cart_id, because=because, product_id=product)]
    if command.quantity == quantity:
        return []
    return [QuantitySet(cart_id=cart_id, because=because, product_id=product, quantity=command.quantity)]


def evolve(state: Cart, _entity: str, event: AnyEvent) -> Cart:
    """The cart after the event."""
    if isinstance(event, CheckedOut):
        return state.model_copy(update={"checked_out": True})
    quantities = dict(state.quantities)
    if isinstance(event, Removed):
        quantities.pop(event.product_id, None)
    else:
        before = quantities.get(event.product_id, 0) if isinstance(event, Added) else 0
        quantities[event.product_id] = before + event.quantity
    return state.model_copy(update={"quantities": quantities})


AGGREGATE: Aggregate[Cart, AnyCommand, AnyEvent] = Aggregate(
    name="carts",
    description="Shopping carts: what is in them, and whether they were checked out.",
    initial=Cart(),
    commands=(Add, Remove, SetQuantity, CheckOut),
    events=(Added, Removed, QuantitySet, CheckedOut),
    decide=decide,
    evolve=evolve,
)
