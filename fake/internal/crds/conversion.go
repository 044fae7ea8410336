// SPDX-License-Identifier: Apache-2.0

package crds

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ConversionClient returns the address of a conversion webhook, in the type that admission webhooks have.
func ConversionClient(w *apiextensionsv1.WebhookConversion) (client admissionregistrationv1.WebhookClientConfig) {
	if w.ClientConfig == nil {
		return client
	}
	client.URL, client.CABundle = w.ClientConfig.URL, w.ClientConfig.CABundle
	if s := w.ClientConfig.Service; s != nil {
		client.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	return client
}

// ConversionOf returns the conversion webhook of a CRD, or nil.
func ConversionOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookConversion {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return nil
	}
	return crd.Spec.Conversion.Webhook
}
