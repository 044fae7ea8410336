// SPDX-License-Identifier: Apache-2.0

package csvtest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// AsOLM returns a copy of an object in the form in which OLM writes it: without the labels and annotations that only
// this library writes, with webhook rules for objects of all scopes, with names that the API server generates, with
// repeated accounts, without the namespace of subjects, with owner kinds in lower case, with the characters that this
// library escapes in messages, and with the lists that OLM does not sort in another order.
func AsOLM(o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, "olm.owner.uid")
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "olmcore/") })
	switch kind := olmcore.KeyOf(o).Kind; {
	case strings.HasSuffix(kind, "WebhookConfiguration"):
		o.SetName(labels["olm.webhook-description-generate-name"] + "-x7k2p")
		widenRules(o)
	case kind == "RoleBinding" && o.GetNamespace() == "kube-system":
		labels = map[string]string{"olm.managed": "true"}
	case strings.HasPrefix(kind, "ClusterRole"):
		delete(labels, "olm.copiedFrom")
		if isOfBundle(o) {
			maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, "olm.owner") })
		}
	case kind == "Secret":
		secret := o.(*corev1.Secret)
		maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool {
			return !slices.Contains([]string{"tls.crt", "tls.key", "olmCAKey"}, key)
		})
	}
	if kind := olmcore.KeyOf(o).Kind; kind == "InstallPlan" || kind == "Subscription" {
		o.SetFinalizers(nil)
	}
	if isOfCondition(o) {
		delete(labels, olmcore.LabelManaged)
	}
	switch o := o.(type) {
	case *operatorsv1.OperatorGroup:
		slices.Reverse(o.Status.Namespaces)
	case *v1alpha1.InstallPlan:
		slices.Reverse(o.Status.CatalogSources)
		slices.Reverse(o.OwnerReferences)
	case *v1alpha1.ClusterServiceVersion:
		report := o.Status.RequirementStatus
		isOfAccount := func(r v1alpha1.RequirementStatus) bool { return r.Kind == "ServiceAccount" }
		if first := slices.IndexFunc(report, isOfAccount); first >= 0 {
			slices.Reverse(report[first:])
		}
	case *operatorsv2.OperatorCondition:
		o.Spec.ServiceAccounts = slices.Concat(o.Spec.ServiceAccounts, o.Spec.ServiceAccounts)
	case *rbacv1.RoleBinding:
		asOLMBinds(o)
	case *rbacv1.ClusterRole:
		for i := range o.OwnerReferences {
			o.OwnerReferences[i].Kind = strings.ToLower(o.OwnerReferences[i].Kind)
		}
	}
	unescapeMessages(o)
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

// unescapeMessages gives the messages of a status the form that OLM writes.
func unescapeMessages(o olmcore.Object) {
	switch o := o.(type) {
	case *v1alpha1.InstallPlan:
		for _, lookup := range o.Status.BundleLookups {
			for i := range lookup.Conditions {
				unescape(&lookup.Conditions[i].Message)
			}
		}
	case *v1alpha1.CatalogSource:
		unescape(&o.Status.Message)
	case *operatorsv2.OperatorCondition:
		for i := range o.Status.Conditions {
			unescape(&o.Status.Conditions[i].Message)
		}
	case *operatorsv1.Operator:
		if o.Status.Components == nil {
			return
		}
		for _, ref := range o.Status.Components.Refs {
			for i := range ref.Conditions {
				unescape(&ref.Conditions[i].Message)
			}
		}
	case *v1alpha1.Subscription:
		for i := range o.Status.Conditions {
			unescape(&o.Status.Conditions[i].Message)
		}
	case *v1alpha1.ClusterServiceVersion:
		unescape(&o.Status.Message)
		for i := range o.Status.Conditions {
			unescape(&o.Status.Conditions[i].Message)
		}
		for i := range o.Status.RequirementStatus {
			r := &o.Status.RequirementStatus[i]
			unescape(&r.Message)
			for j := range r.Dependents {
				unescape(&r.Dependents[j].Message)
			}
		}
	}
}

var escaped = regexp.MustCompile(`\\u[0-9a-f]{4}`)

// unescape replaces the escape sequences of characters that people do not see by these characters.
func unescape(message *string) {
	*message = escaped.ReplaceAllStringFunc(*message, func(sequence string) string {
		var character string
		if json.Unmarshal([]byte(`"`+sequence+`"`), &character) != nil || printable.IsPlain(character) {
			return sequence
		}
		return character
	})
}

// isOfBundle reports whether a ClusterRole or ClusterRoleBinding is a manifest of a bundle. OLM writes no owner labels
// on it.
func isOfBundle(o olmcore.Object) bool {
	labels := o.GetLabels()
	return labels[olmcore.LabelOwnerKind] == v1alpha1.ClusterServiceVersionKind && labels["olm.permissions.hash"] == "" &&
		!strings.HasSuffix(o.GetName(), "-system:auth-delegator")
}

// isOfCondition reports whether an object is an OperatorCondition, or the Role or RoleBinding of one.
func isOfCondition(o olmcore.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return olmcore.KeyOf(o).Kind == "OperatorCondition" || owner != nil && owner.Kind == "OperatorCondition"
}

// asOLMBinds gives the RoleBindings of OperatorConditions and of serving certificates the subjects that OLM writes.
func asOLMBinds(b *rbacv1.RoleBinding) {
	isOfCondition := isOfCondition(b)
	if !isOfCondition && !strings.HasSuffix(b.Name, "-service-cert") {
		return
	}
	for i := range b.Subjects {
		b.Subjects[i].Namespace = ""
	}
	if isOfCondition {
		b.Subjects = slices.Concat(b.Subjects, b.Subjects)
	}
}

// widenRules gives the rules of a webhook configuration the scope that descriptions without one have.
func widenRules(o olmcore.Object) {
	var rules []admissionregistrationv1.RuleWithOperations
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			rules = append(rules, o.Webhooks[i].Rules...)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			rules = append(rules, o.Webhooks[i].Rules...)
		}
	}
	for i := range rules {
		if rules[i].Scope != nil {
			*rules[i].Scope = admissionregistrationv1.AllScopes
		}
	}
}
