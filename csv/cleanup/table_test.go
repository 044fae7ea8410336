// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// TestARowIsAllThatAStageNeeds: one more row is written in portions, reported, given up after its time, and holds what
// comes after it.
func TestARowIsAllThatAStageNeeds(t *testing.T) {
	const quotas = cleanup.Stage("Quotas")
	withQuotas := cleanup.WithStage(quotas, "Quota", 3*time.Minute)
	quota := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Quota"}, ObjectMeta: ours(name)}
	}
	in := leaving()
	in.ClusterObjects.Items = []olmcore.Object{quota("b"), quota("a"), &rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	out, err := withQuotas(in)
	require.NoError(t, err)
	require.Equal(t, quotas, out.Stage)
	require.Equal(t, 2, out.Pending)
	require.Equal(t, []string{"Quota a"}, deletions(out))
	require.Contains(t, out.Diagnostics[0].Message, "cleanup stage Quotas: waiting for 2 object(s): Quota.example.com a (deleting), Quota.example.com b (queued)")

	in.LastRun = olmcore.LastResults{}
	for _, name := range []string{"a", "b"} {
		in.LastRun[olmcore.KeyOf(quota(name))] = olmcore.LastResult{Class: olmcore.Forbidden, Message: "no", Count: 9, First: now.Add(-3 * time.Minute), Last: now}
	}
	in.ClusterServiceVersion.DeletionTimestamp = ago(time.Hour)
	in.ClusterObjects.Items[2].(*rbacv1.ClusterRole).CreationTimestamp = *ago(2 * time.Hour)
	for _, o := range in.ClusterObjects.Items {
		o.SetCreationTimestamp(*ago(2 * time.Hour))
	}
	out, err = withQuotas(in)
	require.NoError(t, err)
	require.Equal(t, cleanup.StageWorkload, out.Stage, "what was refused for too long holds no more")
	require.Equal(t, []string{"Quota a", "Quota b", "Deployment ns/cool"}, deletions(out))
}

// TestEveryStageIsDocumented in the package comment, in order.
func TestEveryStageIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var documented []cleanup.Stage
	for _, match := range regexp.MustCompile(`(?m)^//\t(\w+) {2,}\w`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, cleanup.Stage(match[1]))
	}
	require.Equal(t, append(cleanup.Stages(), cleanup.StageRelease), documented)
}
