// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// stepConfig makes, changes or deletes the OLMConfig.
func stepConfig(h *History, r Choices) {
	config := &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	config.Spec.Features = &operatorsv1.Features{DisableCopiedCSVs: new(r.IntN(2) == 0)}
	if h.Cluster.Create(config) == nil {
		return
	}
	if r.IntN(4) == 0 {
		_ = h.Cluster.Delete(olmcore.RefOf(config).Unversioned())
		return
	}
	h.must(fake.Edit(h.Cluster, "", "cluster", func(c *operatorsv1.OLMConfig) { c.Spec = config.Spec }))
}

// stepNamespace: a namespace without operators comes or goes.
func stepNamespace(h *History, r Choices) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pick(r, []string{"team-1", "team-2", "team-3"})}}
	if h.Cluster.Create(ns) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(ns).Unversioned())
	}
}

// stepTargets changes which namespaces an operator watches.
func stepTargets(h *History, r Choices) {
	h.targets[platform] = pick(r, [][]string{{otherTenant, platform}, {namespace, platform}, {namespace, otherTenant, platform}, {platform}})
	_ = fake.Edit(h.Cluster, platform, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = h.targets[platform] })
}

func stepIssuer(h *History, r Choices) { h.issuerFails = r.IntN(3) == 0 }

// stepCondition is what an operator says, with the rights that its OperatorCondition gives it.
func stepCondition(h *History, r Choices) {
	if all := listed[*operatorsv2.OperatorCondition](h); len(all) > 0 {
		o := pick(r, all)
		h.must(fake.Edit(h.Cluster, o.Namespace, o.Name, func(o *operatorsv2.OperatorCondition) {
			meta.SetStatusCondition(
				&o.Spec.Conditions,
				upgradeable(h, pick(r, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse})),
			)
		}))
	}
}

func upgradeable(h *History, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: operatorsv2.Upgradeable, Status: status, Reason: "Said", LastTransitionTime: metav1.NewTime(h.Cluster.Now())}
}

// stepOverride is what an administrator says instead.
func stepOverride(h *History, r Choices) {
	if all := listed[*operatorsv2.OperatorCondition](h); len(all) > 0 {
		o := pick(r, all)
		h.must(fake.Edit(h.Cluster, o.Namespace, o.Name, func(o *operatorsv2.OperatorCondition) {
			o.Spec.Overrides = pick(r, [][]metav1.Condition{nil, {upgradeable(h, metav1.ConditionTrue)}, {upgradeable(h, metav1.ConditionFalse)}})
		}))
	}
}

// repair takes away what administrators must take away themselves.
func repair(h *History) {
	h.issuerFails, h.policy = false, false
	for _, o := range listed[*operatorsv2.OperatorCondition](h) {
		h.must(fake.Edit(h.Cluster, o.Namespace, o.Name, func(o *operatorsv2.OperatorCondition) {
			o.Spec.Overrides = []metav1.Condition{upgradeable(h, metav1.ConditionTrue)}
		}))
	}
	// A version of the attacker's may have been the first to provide an API, and what his account may not install is
	// tried again for ever.
	for _, o := range h.Cluster.Objects() {
		if o.GetNamespace() == attacker &&
			slices.Contains([]string{"Subscription", "InstallPlan", "ClusterServiceVersion"}, olmcore.GVKOf(o).Kind) {
			_ = h.Cluster.Delete(olmcore.RefOf(o).Unversioned())
		}
	}
}

// isSpoilable reports whether an object is one that the library keeps as a version wants it.
func isSpoilable(o olmcore.Object) bool {
	name, ns := o.GetName(), o.GetNamespace()
	if ns == attacker || ns == victim || ns == "olm" {
		return false
	}
	isLifted := o.GetLabels()["olm.copiedFrom"] != ""
	isServing := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch o := o.(type) {
	case *corev1.Secret, *rbacv1.Role, *rbacv1.ClusterRole:
		return isLifted || isServing("-service-cert")
	case *corev1.Service:
		return isServing("-service")
	case *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding:
		return isLifted || isServing("-service-cert", "-service-auth-reader", "-service-system:auth-delegator")
	case *admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration, *appsv1.Deployment, *operatorsv2.OperatorCondition:
		return true
	case *apiregistrationv1.APIService:
		return o.Spec.Service != nil
	case *apiextensionsv1.CustomResourceDefinition:
		return name == "deltas.example.com"
	case *v1alpha1.ClusterServiceVersion:
		return o.IsCopied()
	}
	return false
}

// isClient reports whether an object says how the API server calls an operator.
func isClient(o olmcore.Object) bool {
	switch o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration,
		*apiregistrationv1.APIService, *apiextensionsv1.CustomResourceDefinition:
		return true
	}
	return false
}

// stepSpoil deletes or changes what operators need to serve, to be seen, or to be permitted.
func stepSpoil(h *History, r Choices) {
	var all []olmcore.Object
	for _, o := range h.Cluster.Objects() {
		if isSpoilable(o) && !(h.Serves && isClient(o)) {
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		spoilOne(h, r, pick(r, all))
	}
}

func spoilOne(h *History, r Choices, o olmcore.Object) {
	h.Figures.Spoils++
	h.say("  %s", olmcore.KeyOf(o))
	if _, isCRD := o.(*apiextensionsv1.CustomResourceDefinition); !isCRD && r.IntN(2) == 0 {
		_ = h.Cluster.Delete(olmcore.RefOf(o).Unversioned())
		return
	}
	_ = h.Cluster.Edit(olmcore.KeyOf(o), func(o olmcore.Object) { spoil(r, o) })
}

func spoil(r Choices, o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Secret:
		o.Data = pick(r, []map[string][]byte{nil, {"tls.crt": []byte("x"), "tls.key": o.Data["tls.key"]}, {"olmCAKey": []byte("x"), "tls.crt": o.Data["tls.crt"], "tls.key": o.Data["tls.key"]}})
	case *corev1.Service:
		o.Spec.Selector = map[string]string{"app": "other"}
	case *rbacv1.Role:
		o.Rules = nil
	case *rbacv1.ClusterRole:
		o.Rules = nil
	case *rbacv1.RoleBinding:
		o.Subjects = nil
	case *rbacv1.ClusterRoleBinding:
		o.Subjects = nil
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			spoilClient(r, &o.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			spoilClient(r, &o.Webhooks[i].ClientConfig)
		}
	case *apiregistrationv1.APIService:
		if o.Spec.CABundle = nil; r.IntN(2) == 0 {
			o.Spec.Service.Name = "other"
		}
	case *apiextensionsv1.CustomResourceDefinition:
		o.Spec.Conversion = nil
	case *appsv1.Deployment:
		// As in OLM, the Pods of an operator that serves webhooks alone are compared by the hash of their specification only.
		isCompared := o.Name != "delta-manager"
		if delete(o.Spec.Template.Annotations, "olmcahash"); r.IntN(2) == 0 && isCompared {
			o.Spec.Template.Spec.Volumes, o.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil
		}
	case *operatorsv2.OperatorCondition:
		o.Spec.Deployments, o.Spec.ServiceAccounts = nil, []string{"other"}
	case *v1alpha1.ClusterServiceVersion:
		spoilCopy(r, o)
	}
}

func spoilClient(r Choices, c *admissionregistrationv1.WebhookClientConfig) {
	if c.CABundle = nil; r.IntN(2) == 0 && c.Service != nil {
		c.Service.Name = "other"
	}
}

func spoilCopy(r Choices, c *v1alpha1.ClusterServiceVersion) {
	switch r.IntN(5) {
	case 0:
		c.Spec.Description = "spoilt"
	case 1:
		if c.Annotations != nil { // without both it would be a version of its own
			delete(c.Labels, "olm.copiedFrom")
		}
	case 2:
		if c.Labels["olm.copiedFrom"] != "" {
			c.Annotations = nil
		}
	case 3:
		c.Status = v1alpha1.ClusterServiceVersionStatus{Phase: v1alpha1.CSVPhaseFailed, Reason: v1alpha1.CSVReasonCopied}
	case 4:
		c.Finalizers = []string{"operators.coreos.com/csv-cleanup"}
	}
}
