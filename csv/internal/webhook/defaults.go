// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/olmcore/olm/olmcore"
)

// semantic compares as equality.Semantic does, and bundles as bytes, not each byte by reflection.
var semantic = conversion.EqualitiesOrDie(bytes.Equal)

// webhooksOf returns a copy of the webhooks of a configuration with what the API server writes into fields that are
// left out.
func webhooksOf(o olmcore.Object) any {
	switch o := o.DeepCopyObject().(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.ClientConfig.Service, w.Rules)
		}
		return o.Webhooks
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
			setDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.ClientConfig.Service, w.Rules)
		}
		return o.Webhooks
	}
	return nil
}

func setDefaults(failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector,
	timeout **int32, service *admissionregistrationv1.ServiceReference, rules []admissionregistrationv1.RuleWithOperations) {
	setDefault(failure, admissionregistrationv1.Fail)
	setDefault(match, admissionregistrationv1.Equivalent)
	setDefault(namespaces, metav1.LabelSelector{})
	setDefault(objects, metav1.LabelSelector{})
	setDefault(timeout, 10)
	if service != nil {
		setDefault(&service.Port, defaultPort)
	}
	for i := range rules {
		setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}
