"""Reporter plugins."""

import json

from nodekeeper_sdk._plugin import Kind, Options, serve
from nodekeeper_sdk.gen.reporterplugin.v1alpha1 import api_pb2 as api

_SERVICE = "reporterplugin.v1alpha1.ReporterPlugin"


async def serve_reporter_plugin(*, report, **options):
    """Serves a reporter plugin until it is cancelled. The agent publishes what it reports in the node's objects.

    report:  a report as of `serve_device_driver`, of lists of contents. A field that the newest value omits is removed.
    options: see `Options`.
    """
    kind = Kind("ReporterPlugin", ["v1alpha1"])
    contents = kind.report(report, api.GetReportContentResponse, "content")
    kind.latest(_SERVICE, "GetReportContent", contents)
    kind.stream(_SERVICE, "ListAndWatchReportContent", contents)
    await serve(Options(**options), kind)


def custom_node_resource(*fields):
    """Returns fields of this node's CustomNodeResource."""
    kind = api.GroupVersionKind(group="node.katalyst.kubewharf.io", version="v1alpha1", kind="CustomNodeResource")
    return api.ReportContent(groupVersionKind=kind, field=fields)


def node(*fields):
    """Returns fields of this node's Node object: labels and annotations."""
    return api.ReportContent(groupVersionKind=api.GroupVersionKind(version="v1", kind="Node"), field=fields)


def spec(name, value):
    """Returns a field of the object's spec, by its JSON name."""
    return _field(api.Spec, name, value)


def status(name, value):
    """Returns a field of the object's status, by its JSON name."""
    return _field(api.Status, name, value)


def metadata(name, value):
    """Returns the object's "labels" or "annotations"."""
    return _field(api.Metadata, name, value)


def _field(part, name, value):
    return api.ReportField(fieldType=part, fieldName=name, value=json.dumps(value).encode())
