// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

// TestNoWebhookReachesBeyondTheNamespaces checks that whatever is described, a new webhook is called for no cluster-scoped object but
// Namespaces and those of the operator's CRDs, and for all namespaced objects that are described.
func TestNoWebhookReachesBeyondTheNamespaces(t *testing.T) {
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

// TestJudgingHugeRulesTakesNoLonger checks that the cost of a rule grows with its lists and not with their product.
func TestJudgingHugeRulesTakesNoLonger(t *testing.T) {
	const size = 20000
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
	s := source(operator(with(validating, r)))
	s.Group = oneNamespace()
	start := time.Now()
	_, problem := s.Install()
	require.Empty(t, problem)
	require.Less(t, time.Since(start), 5*time.Second)
}
