"""Targets of webhooks: which URLs are plain, and which addresses nobody may be sent to."""

import re
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.targets import (
    Allowed,
    Target,
    TargetRefused,
    check_addresses,
    parse_allowed,
    parse_target,
)

HOOK = Target("https", "hooks.example.com", 443, "/")


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://Hooks.Example.com", "https://hooks.example.com:443", "/"),
        ("http://hooks.example.com./in?a=b&c", "http://hooks.example.com:80", "/in?a=b&c"),
        ("http://[2606:2800:21f:cb07::1]:8080/x", "http://[2606:2800:21f:cb07::1]:8080", "/x"),
        ("https://93.184.215.14:8443?x=1", "https://93.184.215.14:8443", "/?x=1"),
    ],
)
def test_a_url_is_taken_apart(url: str, origin: str, path: str) -> None:
    target = parse_target(url)
    assert (target.origin, target.path) == (origin, path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com/x",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "gopher://hooks.example.com:70/",
        "http://",
        "http:///path",
        "http://user:pass@hooks.example.com/",
        "http://hooks.example.com@127.0.0.1/",
        "http://hooks.example.com\\@127.0.0.1/",
        "http://hooks.example.com/#fragment",
        "http://hooks.example.com:99999/",
        "http://hooks.example.com:0/",
        "http://hooks example.com/",
        "http://hooks.example.com/\r\nX-Injected: 1",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://münchen.example/",
        "http://hooks.example.com/" + "x" * 2048,
        "http://" + "a" * 64 + ".example.com/",
        "http://" + "a." * 128 + "/",
    ],
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(TargetRefused):
        parse_target(url)


PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "198.18.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a00:1", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1", "not an address",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_and_special_addresses_are_refused(address: str) -> None:
    with pytest.raises(TargetRefused, match=re.escape(f"leads to {address}")):
        check_addresses(HOOK, [address], Allowed())
    with pytest.raises(TargetRefused):
        check_addresses(HOOK, ["93.184.215.14", address], Allowed())


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:2800:21f::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_public_addresses_pass(address: str) -> None:
    check_addresses(HOOK, [address], Allowed())


def test_a_name_without_address_leads_nowhere() -> None:
    with pytest.raises(TargetRefused, match="has no address"):
        check_addresses(HOOK, [], Allowed())


def test_the_operator_allows_networks_and_names() -> None:
    allowed = parse_allowed(" 127.0.0.0/8, ::1, 10.1.2.3 ,Hooks.Internal.,")
    check_addresses(HOOK, ["127.0.0.1"], allowed)
    check_addresses(HOOK, ["::ffff:127.0.0.1"], allowed)
    check_addresses(HOOK, ["::1", "10.1.2.3"], allowed)
    check_addresses(Target("http", "hooks.internal", 80, "/"), ["192.168.0.9"], allowed)
    for refused in ("10.1.2.4", "::2", "192.168.0.9"):
        with pytest.raises(TargetRefused):
            check_addresses(HOOK, [refused], allowed)


@pytest.mark.parametrize("text", ["10.0.0.0/33", "a b", "http://x", "*", "x/8"])
def test_what_is_neither_network_nor_name_is_no_allowance(text: str) -> None:
    with pytest.raises(ValueError, match="is no network"):
        parse_allowed(text)


@given(st.ip_addresses(v=4))
def test_an_address_in_the_clothes_of_another_family_is_judged_as_itself(address: IPv4Address) -> None:
    def refused(text: str) -> bool:
        try:
            check_addresses(HOOK, [text], Allowed())
        except TargetRefused:
            return True
        return False

    plain = refused(str(address))
    assert plain is refused(f"::ffff:{address}")
    assert plain is refused(str(IPv6Address(int(IPv6Address("64:ff9b::")) + int(address))))
    if not address.is_global:
        assert plain
