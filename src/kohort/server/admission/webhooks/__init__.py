"""Admission webhooks: other programs that change or refuse writes, called over HTTPS (admission.k8s.io/v1)."""

from kohort.server.admission.webhooks.plugins import MutatingWebhooks, ValidatingWebhooks, WebhookRules

__all__ = ["MutatingWebhooks", "ValidatingWebhooks", "WebhookRules"]
