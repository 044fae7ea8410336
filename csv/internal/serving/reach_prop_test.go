// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
)

// drawnRule is a rule for Namespaces, Nodes, Pods, and custom resources of the CSV and of others.
func drawnRule(t *rapid.T) ruleWithOperations {
	groupNames := []string{"", "example.com", "other.example", "rbac.authorization.k8s.io"}
	groups := rapid.SliceOfN(rapid.SampledFrom(groupNames), 1, 3).Draw(t, "groups")
	names := []string{
		"pods", "namespaces", "wides", "cools", "alls", "nodes", "clusterroles", "*", "*/*", "wides/status", "cools/*", "namespaces/",
	}
	entries := rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "resources")
	r := rule("", "")
	r.APIGroups, r.Resources = groups, entries
	scopes := []admissionregistrationv1.ScopeType{"", "*", admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope}
	if scope := rapid.SampledFrom(scopes).Draw(t, "scope"); scope != "" {
		r.Scope = &scope
	}
	return r
}

// asks reports whether rules match an object, as the API server matches them.
func asks(rules []ruleWithOperations, group, resource, part string, namespaced bool) bool {
	return slices.ContainsFunc(rules, func(r ruleWithOperations) bool {
		isAll := r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes
		if !isAll && namespaced != (*r.Scope == admissionregistrationv1.NamespacedScope) {
			return false
		}
		return slices.Contains(r.APIGroups, group) && slices.ContainsFunc(r.Resources, func(entry string) bool {
			name, sub, _ := strings.Cut(entry, "/")
			return (name == "*" || name == resource) && (sub == "*" || sub == part)
		})
	})
}

// TestWebhooksAreLimitedToSelectedNamespaces checks that a new webhook is called for no cluster-scoped objects except
// Namespaces and objects of the operator's own CRDs, whatever its description contains. It is called for all namespaced
// objects that are described.
func TestWebhooksAreLimitedToSelectedNamespaces(t *testing.T) {
	objects := []struct {
		group, resource string
		namespaced, own bool
	}{
		{"", "pods", true, false}, {"", "namespaces", false, true}, {"", "nodes", false, false},
		{"rbac.authorization.k8s.io", "clusterroles", false, false}, {"rbac.authorization.k8s.io", "roles", true, false},
		{"example.com", "cools", true, false}, {"example.com", "wides", false, true}, {"example.com", "strays", false, false},
		{"other.example", "alls", false, false}, {"other.example", "wides", false, false}, {"other.example", "namespaces", false, false},
	}
	theirs := crd("alls.other.example", clusterScoped, recorded("other/b"), func(crd *definition) { crd.Spec.Group = "other.example" })
	rapid.Check(t, func(t *rapid.T) {
		w := with(validating, rapid.SliceOfN(rapid.Custom(drawnRule), 1, 3).Draw(t, "rules")...)
		csv := owning(w, "wides.example.com", "alls.other.example")
		s := source(csv, crd("cools.example.com"), crd("wides.example.com", clusterScoped), theirs)
		s.Group = oneNamespace()
		actions, problem := s.Install()
		if problem != "" {
			return
		}
		created := actions[0].(olmcore.Create).Object
		for _, o := range objects {
			for _, part := range []string{"", "status"} {
				described := asks(w.Rules, o.group, o.resource, part, o.namespaced)
				got := asks(liveRules(created), o.group, o.resource, part, o.namespaced)
				require.False(t, got && !described, "%v", o)
				require.False(t, got && !o.namespaced && !o.own, "%v", o)
				require.False(t, described && o.namespaced && !got, "%v", o)
			}
		}
		observe(&s, created)
		actions, problem = s.Install()
		require.Empty(t, problem)
		require.Empty(t, lines(append(actions, s.Trust()...)))
	})
}

// TestDescriptionChoosesNeitherNamespacesNorService checks that no field of a description adds namespaces to its
// webhook, or makes the API server call another Service than that of the operator.
func TestDescriptionChoosesNeitherNamespacesNorService(t *testing.T) {
	want := &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group": ""}}
	without := metav1.LabelSelectorRequirement{Key: "x", Operator: metav1.LabelSelectorOpDoesNotExist}
	anyLabel := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{without}}
	for name, change := range map[string]func(w *description){
		"an object selector":      func(w *description) { w.ObjectSelector = anyLabel },
		"another path":            func(w *description) { w.WebhookPath = new("/apis/../../x") },
		"a path to a host":        func(w *description) { w.WebhookPath = new("//other.example") },
		"a path with a namespace": func(w *description) { w.WebhookPath = new("/other/service") },
		"another port":            func(w *description) { w.ContainerPort = 6443 },
		"another target port":     func(w *description) { w.TargetPort = new(intstr.FromInt32(10250)) },
		"equivalent resources":    func(w *description) { w.MatchPolicy = new(admissionregistrationv1.Equivalent) },
		"all, and failures refuse": func(w *description) {
			w.Rules, w.FailurePolicy = list(rule("", "*/*")), new(admissionregistrationv1.Fail)
		},
		"CRDs to convert":         func(w *description) { w.ConversionCRDs = []string{"alls.other.example"} },
		"a Deployment elsewhere":  func(w *description) { w.DeploymentName = "other/cool" },
		"a Deployment with a dot": func(w *description) { w.DeploymentName = "cool.other" },
	} {
		for _, kind := range []v1alpha1.WebhookAdmissionType{validating, mutating} {
			s := source(operator(describe("v.example.com", kind, change)))
			s.Group = oneNamespace()
			actions, problem := s.Install()
			if problem != "" {
				require.Empty(t, actions, name)
				continue
			}
			require.Len(t, actions, 1, name)
			var selector *metav1.LabelSelector
			var client admissionregistrationv1.WebhookClientConfig
			switch o := actions[0].(olmcore.Create).Object.(type) {
			case *validatingConfiguration:
				require.Len(t, o.Webhooks, 1, name)
				selector, client = o.Webhooks[0].NamespaceSelector, o.Webhooks[0].ClientConfig
			case *mutatingConfiguration:
				require.Len(t, o.Webhooks, 1, name)
				selector, client = o.Webhooks[0].NamespaceSelector, o.Webhooks[0].ClientConfig
			}
			require.Equal(t, want, selector, name)
			require.Nil(t, client.URL, name)
			require.Equal(t, "ns/cool-service", client.Service.Namespace+"/"+client.Service.Name, name)
			for _, r := range liveRules(actions[0].(olmcore.Create).Object) {
				require.Equal(t, admissionregistrationv1.NamespacedScope, *r.Scope, name)
			}
		}
	}
}

// TestCostOfHugeRuleIsLinear checks that the cost of a rule grows with the lengths of its lists, not with their
// product.
func TestCostOfHugeRuleIsLinear(t *testing.T) {
	allocations := func(size int) float64 {
		s := source(operator(with(validating, hugeRule(size))))
		s.Group = oneNamespace()
		return testing.AllocsPerRun(1, func() {
			_, problem := s.Install()
			require.Empty(t, problem)
		})
	}
	require.Less(t, allocations(20000), 2.5*allocations(10000))
}

// hugeRule returns a rule with different API groups and resources, of which many differ in their case alone.
func hugeRule(size int) admissionregistrationv1.RuleWithOperations {
	r := rule("", "")
	r.APIGroups, r.Resources = nil, nil
	for i := range size {
		group := []byte("rbac.authorization.k8s.io")
		for bit := range 4 {
			if i>>bit&1 == 1 {
				group[bit] -= 'a' - 'A'
			}
		}
		r.APIGroups = append(r.APIGroups, string(group), fmt.Sprintf("g%d.example", i))
		r.Resources = append(r.Resources, "pods", fmt.Sprintf("r%d", i))
	}
	return r
}
