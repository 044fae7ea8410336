// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// goldenCalledSpec is goldenSpec of an operator with webhooks, with the hash of its authority. Both volumes come first,
// as in the order of the Go types.
const goldenCalledSpec = `{"replicas":1,"selector":{"matchLabels":{"app":"cool"}},"template":{"metadata":{"labels":{"app":"cool"},` +
	`"annotations":{"olm.operatorGroup":"group","olm.operatorNamespace":"ns","olm.targetNamespaces":"","olmcahash":"%s"}},` +
	`"spec":{"volumes":[{"name":"apiservice-cert","secret":{"secretName":"cool-service-cert","items":[{"key":"tls.crt","path":"apiserver.crt"},{"key":"tls.key","path":"apiserver.key"}]}},` +
	`{"name":"webhook-cert","secret":{"secretName":"cool-service-cert","items":[{"key":"tls.crt","path":"tls.crt"},{"key":"tls.key","path":"tls.key"}]}}],` +
	`"containers":[{"name":"manager","image":"example.com/cool:1","env":[{"name":"OPERATOR_CONDITION_NAME","value":"cool.v1"}],"resources":{},` +
	`"volumeMounts":[{"name":"apiservice-cert","mountPath":"/apiserver.local.config/certificates"},{"name":"webhook-cert","mountPath":"/tmp/k8s-webhook-server/serving-certs"}]}],` +
	`"serviceAccountName":"cool"}},"strategy":{},"revisionHistoryLimit":1}`

func TestSpecHashOfServingDeploymentEqualsHashOfOLM(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	secret := fake.Find[*corev1.Secret](cluster, "ns", "cool-service-cert")
	ca := sha256.Sum256(secret.Data["olmCAKey"])
	sum := sha256.Sum224([]byte(fmt.Sprintf(goldenCalledSpec, hex.EncodeToString(ca[:])) + "\n"))
	d := fake.Find[*appsv1.Deployment](cluster, "ns", "cool")
	require.Equal(t, new(big.Int).SetBytes(sum[:]).Text(62), d.Labels["olm.deployment-spec-hash"])
	require.Equal(t, hex.EncodeToString(ca[:]), secret.Annotations["olmcahash"])
}

// TestAdoptionOfAnInstalledOperatorWritesNothing checks that nothing is written and no Pod is restarted when this
// library takes over an operator that OLM installed.
func TestAdoptionOfAnInstalledOperatorWritesNothing(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	var objects []olmcore.Object
	differ := 0
	for _, o := range cluster.Objects() {
		adopted := csvtest.AsOLM(o)
		if !equality.Semantic.DeepEqual(adopted, o) {
			differ++
		}
		objects = append(objects, adopted)
	}
	require.GreaterOrEqual(t, differ, 5)
	for _, phase := range []phaseName{succeeded, installing} {
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		if phase == installing {
			hold(in.ClusterServiceVersion, phase, "InstallSucceeded", "waiting for install components to report healthy", 0)
			in.ClusterServiceVersion.Status.LastTransitionTime = nil
		}
		out := reconciled(t, in)
		if phase == installing {
			require.Len(t, out.Actions, 1, "%s", invariant.Describe(out.Result))
			require.Len(t, out.Transitions, 1)
			require.Equal(t, string(succeeded), out.Transitions[0].To)
			continue
		}
		require.Empty(t, out.Actions, "%s", invariant.Describe(out.Result))
	}
}

// TestRequirementReportOfOLMIsKept checks that the order in which OLM lists ServiceAccounts is kept, and that
// characters which OLM does not escape stay. Another content of the report is written.
func TestRequirementReportOfOLMIsKept(t *testing.T) {
	c := csvtest.Operator("cool.v1", 1)
	c.UID, c.ResourceVersion = "", ""
	for _, name := range []string{"first", "second", "third"} {
		strategy := &c.Spec.InstallStrategy.StrategySpec
		hidden := rbacv1.PolicyRule{Verbs: []string{"get\u202e"}, APIGroups: []string{""}, Resources: []string{"pods\u200b"}}
		strategy.Permissions = append(strategy.Permissions, v1alpha1.StrategyDeploymentPermissions{
			ServiceAccountName: name, Rules: []rbacv1.PolicyRule{hidden},
		})
	}
	c.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "\u202e.example.com", Version: "v1", Kind: "Hot"}}
	cluster, driver := newWorld(csv.Config{})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second"}}
	require.NoError(t, cluster.Create(groupFor(c), account, c))
	require.NoError(t, driver.Settle(t.Context()))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, pending, live.Status.Phase, live.Status.Message)
	adopted := csvtest.AsOLM(live).(*v1alpha1.ClusterServiceVersion)
	require.NotEqual(t, live.Status.RequirementStatus, adopted.Status.RequirementStatus)
	require.Contains(t, messagesOf(live), `namespaced rule:{"verbs":["get\u202e"],"apiGroups":[""],"resources":["pods\u200b"]}`)
	require.Contains(t, messagesOf(adopted), "namespaced rule:{\"verbs\":[\"get\u202e\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\u200b\"]}")

	in, err := csv.Gather(t.Context(), cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion, in.ClusterServiceVersion = cluster.Now(), kubernetesVersion, adopted
	require.Empty(t, reconciled(t, in).Actions)
	for name, change := range map[string]func(s *v1alpha1.ClusterServiceVersionStatus){
		"an entry is missing": func(s *v1alpha1.ClusterServiceVersionStatus) { s.RequirementStatus = s.RequirementStatus[1:] },
		"an entry is there twice": func(s *v1alpha1.ClusterServiceVersionStatus) {
			s.RequirementStatus = append(s.RequirementStatus, s.RequirementStatus[0])
		},
		"an entry differs": func(s *v1alpha1.ClusterServiceVersionStatus) { s.RequirementStatus[1].Message = "fine" },
		"a rule differs": func(s *v1alpha1.ClusterServiceVersionStatus) {
			i := slices.IndexFunc(s.RequirementStatus, func(r v1alpha1.RequirementStatus) bool { return len(r.Dependents) > 0 })
			s.RequirementStatus[i].Dependents[0].Message += "\u202e"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in.ClusterServiceVersion = adopted.DeepCopy()
			change(&in.ClusterServiceVersion.Status)
			actions := reconciled(t, in).Actions
			require.Len(t, actions, 1)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](actions)
			require.Equal(t, live.Status.RequirementStatus, after.Status.RequirementStatus)
		})
	}
}

// messagesOf returns the messages of the rules in the requirement report of a version.
func messagesOf(c *v1alpha1.ClusterServiceVersion) (messages []string) {
	for _, r := range c.Status.RequirementStatus {
		for _, d := range r.Dependents {
			messages = append(messages, d.Message)
		}
	}
	return messages
}
