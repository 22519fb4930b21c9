"""AMD GPUs against typed answers of amdsmi; nothing here was tried on hardware."""

from pytest import approx, mark, raises

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.amd import AmdMeter, available
from carbonreport.testing.clock import FakeClock

MICROJOULES_PER_COUNT = 15.3


class AmdSmiException(Exception):
    def __init__(self, code=2):
        super().__init__(f"status {code}")
        self.code = code

    def get_error_code(self):
        return self.code


class Card:
    """One board and what it answers."""

    def __init__(self, serial, watts=300.0, name="AMD Instinct MI300X", power="current_socket_power", counter=1.0, hip_id=None, **more):
        self.serial, self.watts, self.name, self.power, self.counter, self.hip_id = serial, watts, name, power, counter, hip_id
        self.energy_key, self.is_lost = more.get("energy_key", "energy_accumulator"), False


class FakeAmdsmi:
    """The module, on a fake clock.

    `counter` of a card: what its counter counts of each true joule; None where it has none.
    """

    AmdSmiException = AmdSmiException

    def __init__(self, clock, cards, refusal=None):
        self.clock, self.cards, self.refusal, self.users = clock, cards, refusal, 0
        self.began_ns = clock.boot_ns() - 10**12

    def amdsmi_init(self):
        if self.refusal is not None:
            raise AmdSmiException(self.refusal)
        self.users += 1

    def amdsmi_shut_down(self):
        self.users -= 1

    def amdsmi_get_processor_handles(self):
        return self.cards

    def amdsmi_get_gpu_enumeration_info(self, card):
        if card.hip_id is None:
            raise AmdSmiException
        return {"hip_id": card.hip_id, "hip_uuid": f"GPU-{card.serial}"}

    def amdsmi_get_gpu_asic_info(self, card):
        return {"market_name": card.name, "asic_serial": f"0x{card.serial.upper()}"}

    def amdsmi_get_power_info(self, card):
        if card.is_lost:
            raise AmdSmiException
        power = {"current_socket_power": "N/A", "average_socket_power": "N/A", "power_limit": 750}
        return power if card.power is None else {**power, card.power: card.watts}

    def amdsmi_get_energy_count(self, card):
        if card.counter is None or card.is_lost:
            raise AmdSmiException
        joules = 5.0 + card.counter * card.watts * (self.clock.boot_ns() - self.began_ns) * 1e-9
        return {card.energy_key: round(joules / MICROJOULES_PER_COUNT * 1e6), "counter_resolution": MICROJOULES_PER_COUNT, "timestamp": 1}


class Session:
    """A meter on fake boards, polled as the sampler polls it."""

    def __init__(self, *cards, **environ):
        self.clock = FakeClock()
        self.amdsmi = FakeAmdsmi(self.clock, list(cards))
        self.run_clock = RunClock(self.clock)
        self.meter = AmdMeter(self.amdsmi, environ)
        self.devices = self.meter.open(self.run_clock)
        self.joules, self.gains, self.gaps, self.notes = {}, {}, [], []
        self.poll()

    def poll(self, *, is_last=False):
        poll = self.meter.poll(is_last=is_last)
        for reading in poll.readings:
            assert reading.joules >= self.joules.get(reading.device, 0.0)
            self.joules[reading.device] = reading.joules
        self.gains |= poll.gains
        self.gaps += poll.gaps
        self.notes += poll.notes

    def run(self, seconds):
        step_s = self.meter.period_s or 1.0
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.poll()
        return self

    def end(self):
        self.poll(is_last=True)
        self.meter.close()
        assert self.amdsmi.users == 0
        return self

    def ids(self):
        return [device.id for device in self.devices]

    def total(self, device):
        return self.joules[device] * self.gains.get(device, 1.0)

    def slugs(self):
        return [note.slug for note in self.notes]


@mark.parametrize(
    ("card", "method", "period_s"),
    [
        (Card("a1"), "anchored", 0.1),
        (Card("a1", power="socket_power"), "anchored", 0.1),
        (Card("a1", power="average_socket_power", name="AMD Instinct MI210"), "anchored", 0.5),
        (Card("a1", energy_key="power"), "anchored", 0.1),
        (Card("a1", power=None), "counter", None),
        (Card("a1", counter=None), "instant", 0.1),
        (Card("a1", counter=None, power="average_socket_power"), "averaged", 0.5),
    ],
)
def test_the_best_way_that_a_board_offers_is_taken_and_measures_its_energy(card, method, period_s):
    session = Session(card).run(60).end()

    (device,) = session.devices
    assert (device.method, session.meter.period_s) == (method, period_s)
    assert "amdsmi" in device.source and "not tried on hardware" in device.source
    assert session.total("GPU-a1") == approx(300 * 60, rel=0.02)
    assert not session.gaps
    assert session.slugs() == (["averaged-power"] if method == "averaged" else [])


def test_a_counter_within_a_tenth_scales_the_power():
    session = Session(Card("a1", counter=1.05)).run(60).end()

    assert session.total("GPU-a1") == approx(1.05 * 300 * 60, rel=0.01)


@mark.parametrize("share", [0.0, 0.3, 2.0])
def test_a_counter_that_is_wrong_or_stands_still_leaves_the_power_alone_and_is_said(share):
    session = Session(Card("a1", counter=share)).run(90).end()

    assert session.total("GPU-a1") == approx(300 * 90, rel=0.01)
    assert session.slugs() == ["counter-doubted"]
    assert "the power alone is used" in session.notes[0].text


def test_a_counter_alone_that_stands_still_is_a_gap_and_no_zero_energy():
    session = Session(Card("a1", power=None, counter=0.0)).run(60).end()

    assert [(gap.from_s, gap.to_s) for gap in session.gaps] == [(0.0, approx(60))]
    assert session.slugs() == ["device-lost"]


def test_both_dies_of_an_mi250_are_counted_once_where_the_first_reports():
    second = {"power": None, "counter": None, "name": "AMD Instinct MI250X"}
    cards = [Card("a0", 400.0, "AMD Instinct MI250X"), Card("a1", **second), Card("b0", 500.0, "AMD Instinct MI250X"), Card("b1", **second)]

    session = Session(*cards).run(60).end()

    assert session.ids() == ["GPU-a0", "GPU-b0"]
    assert session.total("GPU-a0") == approx(400 * 60, rel=0.01)
    assert session.slugs() == ["dies-together", "dies-together"]


def test_a_run_on_the_second_die_alone_is_counted_on_the_first_and_never_zero():
    cards = [Card("a0", 400.0, "AMD Instinct MI250X"), Card("a1", 0.0, "AMD Instinct MI250X")]

    session = Session(*cards, HIP_VISIBLE_DEVICES="1").run(10).end()

    assert session.ids() == ["GPU-a0"]
    assert "dies-together" in session.slugs()
    assert session.total("GPU-a0") == approx(400 * 10, rel=0.02)


FOUR = [Card(f"{i:016x}", hip_id=hip_id) for i, hip_id in ((10, 1), (11, 0), (12, 2), (13, 3))]


@mark.parametrize(
    ("environ", "expected"),
    [
        ({}, [11, 10, 12, 13]),
        ({"ROCR_VISIBLE_DEVICES": "0,3"}, [11, 13]),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, [13]),
        ({"HIP_VISIBLE_DEVICES": "1"}, [10]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [10]),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "2"}, [10]),
        ({"ROCR_VISIBLE_DEVICES": f"GPU-{12:016X},0"}, [12, 11]),
        ({"ROCR_VISIBLE_DEVICES": "0,-1,2"}, [11]),
    ],
)
def test_the_variables_name_the_boards_that_rocm_would_show(environ, expected):
    assert Session(*FOUR, **environ).ids() == [f"GPU-{i:016x}" for i in expected]


@mark.parametrize("environ", [{"HIP_VISIBLE_DEVICES": ""}, {"ROCR_VISIBLE_DEVICES": "-1"}])
def test_no_visible_board_is_no_meter(environ):
    with raises(MeterAbsent, match="visible to the program"):
        Session(*FOUR, **environ)


def test_a_board_that_gives_nothing_is_left_out_and_said():
    session = Session(Card("a1"), Card("b2", power=None, counter=None)).run(1).end()

    assert session.ids() == ["GPU-a1"]
    assert "GPU 1 (AMD Instinct MI300X) gives neither power nor energy" in session.notes[0].text
    with raises(MeterError, match="neither power nor energy"):
        Session(Card("b2", power=None, counter=None))


def test_a_board_that_stops_answering_is_a_gap_from_there():
    card = Card("a1")
    session = Session(card).run(40)
    card.is_lost = True
    session.run(20).end()

    assert session.total("GPU-a1") == approx(300 * 40, rel=0.01)
    assert [(gap.from_s, gap.to_s) for gap in session.gaps] == [(approx(40), approx(60))]
    assert "device-lost" in session.slugs()


@mark.parametrize(("code", "error", "words"), [(10, MeterDenied, "usermod -aG render"), (34, MeterError, "cannot be started")])
def test_a_driver_that_refuses_is_an_error_with_the_way_out(code, error, words):
    clock = FakeClock()

    with raises(error, match=words):
        AmdMeter(FakeAmdsmi(clock, [], refusal=code), {}).open(RunClock(clock))


def test_available_answers_in_one_line():
    assert "\n" not in (available() or "")
