// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// installed is an operator that provides an API.
const installed = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: ops, name: group}
spec: {targetNamespaces: [ops]}
status: {namespaces: [ops], lastUpdated: "2026-01-02T12:00:00Z"}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: ops, name: cron.v1, annotations: {olm.operatorNamespace: ops, olm.operatorGroup: group, olm.targetNamespaces: ops}}
spec:
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions: {owned: [{name: crons.example.com, kind: Cron, version: v1}]}
  install: {strategy: deployment, spec: {deployments: []}}
status: {phase: Succeeded}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crons.example.com, annotations: {operatorframework.io/installed-alongside-1: ops/cron.v1}}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crons, singular: cron, kind: Cron, listKind: CronList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-a-user, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [another.example.com], resources: ["*"], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-a-bundle, labels: {olm.managed: "true", olm.owner: cron.v1, olm.owner.namespace: ops, olm.owner.kind: ClusterServiceVersion, rbac.authorization.k8s.io/aggregate-to-view: "true", rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules: [{apiGroups: [""], resources: [nodes], verbs: [delete]}]
`

// TestWhatOperatorsProvideMayBeListedAndDeleted: the role for it aggregates the ClusterRoles that the controllers make
// for an operator's APIs, of these those that let view and edit, and no other.
func TestWhatOperatorsProvideMayBeListedAndDeleted(t *testing.T) {
	c := fake.NewCluster(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	read, err := decode.Read("installed", strings.NewReader(installed))
	require.NoError(t, err)
	objects, err := decode.Distinct(read)
	require.NoError(t, err)
	require.NoError(t, c.Load(objects...))
	set := controllers.New(&controllers.Options{})
	require.NoError(t, set.Only(controllers.Permissions))
	require.NoError(t, controller.Pass(t.Context(), set.Runners(c, c), c.Now))

	for _, folder := range overlays {
		role := find[rbacv1.ClusterRole](t, rendered(t, folder), "olm-customresources")
		require.Empty(t, role.Rules, "what the controller of the API server writes is nobody else's")
		var rules []rbacv1.PolicyRule
		for _, s := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			require.NoError(t, err)
			selected, err := olmcore.List[*rbacv1.ClusterRole](t.Context(), c, "", selector)
			require.NoError(t, err)
			for _, r := range selected {
				rules = append(rules, r.Rules...)
			}
		}
		require.Empty(t, cmp.Diff([]rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"crons.example.com"}},
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"example.com"}, Resources: []string{"crons"}},
			{Verbs: []string{"create", "update", "patch", "delete"}, APIGroups: []string{"example.com"}, Resources: []string{"crons"}},
		}, rules))
	}
}
