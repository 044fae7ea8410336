// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// TestConcernedReturnsOnlyRelatedCSVs checks changes for which Affected returns all CSVs.
func TestConcernedReturnsOnlyRelatedCSVs(t *testing.T) {
	owner := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "ns", Name: "cool.v1"}
	labelled := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Labels: owner.Labels()} }
	coOwned := metav1.ObjectMeta{Name: "role", Annotations: olmcore.SetCoOwners(nil, []olmcore.Owner{owner})}
	definition := func(name string) olmcore.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	service := func(name string) olmcore.Object {
		return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	role := func(version string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role", ResourceVersion: version}, Rules: rules}
	}
	group := func(namespace, apis string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g", Annotations: map[string]string{"olm.providedAPIs": apis}}}
	}
	nodes := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}
	leases := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}
	metrics := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}
	aggregated := role("1")
	aggregated.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	needs := func(rules ...rbacv1.PolicyRule) func(c *v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: rules}}
		}
	}
	plain := func(*v1alpha1.ClusterServiceVersion) {}
	for name, tt := range map[string]struct {
		change    func(c *v1alpha1.ClusterServiceVersion)
		old, next olmcore.Object
		want      bool
	}{
		"a definition that it owns":                  {plain, nil, definition("cools.example.com"), true},
		"a definition that it requires":              {plain, nil, definition("hots.example.com"), true},
		"a definition of another":                    {plain, nil, definition("warms.example.com"), false},
		"a definition with its labels":               {plain, nil, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: labelled("warms.example.com")}, true},
		"a definition that had its labels":           {plain, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: labelled("warms.example.com")}, definition("warms.example.com"), true},
		"a definition, and it is a copy":             {func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }, nil, definition("cools.example.com"), false},
		"an API that it serves":                      {plain, nil, service("v1.ice.example.com"), true},
		"an API that it requires":                    {plain, nil, service("v1.fire.example.com"), true},
		"an API of another":                          {plain, nil, service("v1.air.example.com"), false},
		"a role of what it needs":                    {needs(nodes), nil, role("1", nodes), true},
		"a role of other groups":                     {needs(nodes), nil, role("1", leases), false},
		"a role that comes to grant what it needs":   {needs(nodes), role("1", leases), role("2", leases, nodes), true},
		"a role that grants more of other groups":    {needs(nodes), role("1", nodes), role("2", nodes, leases), false},
		"a role that aggregates anything":            {needs(nodes), nil, aggregated, true},
		"a role that aggregates anything, it URLs":   {needs(metrics), nil, aggregated, true},
		"a role of URLs":                             {needs(metrics), nil, role("1", metrics), true},
		"a role of no URLs":                          {needs(metrics), nil, role("1", nodes), false},
		"a role, and it needs nothing":               {plain, nil, role("1", nodes), false},
		"a role with its labels":                     {plain, nil, &rbacv1.ClusterRole{ObjectMeta: labelled("x")}, true},
		"a role that records it as a co-owner":       {plain, nil, &rbacv1.ClusterRole{ObjectMeta: coOwned}, true},
		"a role that recorded it as a co-owner":      {plain, &rbacv1.ClusterRole{ObjectMeta: coOwned}, role("1", leases), true},
		"a role, and it is not installed yet":        {func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = v1alpha1.CSVPhasePending }, nil, role("1", leases), true},
		"a group of its namespace":                   {plain, nil, group("ns", ""), true},
		"a group elsewhere that lists its API":       {plain, nil, group("x", "Cool.v1.example.com"), true},
		"a group elsewhere that listed its API":      {plain, group("x", "Cool.v1.example.com"), group("x", ""), true},
		"a group elsewhere that lists others":        {plain, nil, group("x", "Cool.v2.example.com"), false},
		"what Affected knows exactly counts for all": {plain, nil, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1"}}
			c.Status.Phase = v1alpha1.CSVPhaseSucceeded
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cools.example.com", Version: "v1", Kind: "Cool"}}
			c.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "hots.example.com", Version: "v1", Kind: "Hot"}}
			c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
			c.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{{Group: "fire.example.com", Version: "v1", Kind: "Fire"}}
			tt.change(c)
			isConcerned, _ := csv.Concerned(tt.old, tt.next)
			require.Equal(t, tt.want, isConcerned(c))
		})
	}
}
