// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// allRead says that what the input lacks does not exist.
func allRead(in unpack.Input) unpack.Input {
	in.Jobs.Complete, in.Pods.Complete, in.OperatorGroups.Complete = true, true, true
	return in
}

func annotated(key, value string) func(*unpack.Input) {
	return func(in *unpack.Input) {
		in.OperatorGroups = olmcore.Found(Group(func(g *operatorsv1.OperatorGroup) { g.Annotations = map[string]string{key: value} }))
	}
}

func emptyConfigMap() *corev1.ConfigMap {
	cm := Filled(nil)
	cm.Annotations = nil
	return cm
}

func ended(kind batchv1.JobConditionType, d time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		c := batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: *Ago(d)}
		if kind == batchv1.JobFailed {
			c.Reason, c.Message = "DeadlineExceeded", "Job was active longer than specified deadline"
		}
		j.Status.Conditions = append(j.Status.Conditions, c)
	}
}

func loaded(files map[string]string) func(*unpack.Input) {
	return func(in *unpack.Input) { in.ConfigMap = Filled(files) }
}

// madeJob is the Job that Unpack asks for, as the cluster has it.
func madeJob(t require.TestingT, change ...func(*batchv1.Job)) *batchv1.Job {
	out := unpackRound(t, unpacking(t))
	require.Len(t, out.Actions, 1)
	j := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*batchv1.Job)
	j.UID, j.ResourceVersion, j.CreationTimestamp = "uid-job", "1", *Ago(time.Minute)
	for _, f := range change {
		f(j)
	}
	return j
}

// retried is the name of the second Job of the bundle.
const retried = "fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b59166kxhix"

func unpackResult(in unpack.Input) (olmcore.Result, error) {
	out, err := unpack.Bundle(allRead(in))
	return out.Result, err
}

func unpackRound(t require.TestingT, in unpack.Input) unpack.Outcome {
	out, err := unpack.Bundle(allRead(in))
	require.NoError(t, err)
	return out
}

// unpacking is the input in which everything but the Job is as it should be.
func unpacking(t require.TestingT, change ...func(*unpack.Input)) unpack.Input {
	in := unpack.Input{
		Now: Noon, Lookup: Lookup(t), Config: Images,
		CatalogSource:  &v1alpha1.CatalogSource{ObjectMeta: InOLM("cool"), Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}},
		ConfigMap:      emptyConfigMap(),
		ServiceAccount: &corev1.ServiceAccount{ObjectMeta: InOLM(BundleName)},
		Role: &rbacv1.Role{ObjectMeta: InOLM(BundleName), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{BundleName}, Verbs: []string{"create", "get", "update"}}}},
		RoleBinding: &rbacv1.RoleBinding{ObjectMeta: InOLM(BundleName), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: BundleName},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: BundleName, Namespace: "olm"}}},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func withJobs(jobs ...*batchv1.Job) func(*unpack.Input) {
	return func(in *unpack.Input) { in.Jobs = olmcore.Found(jobs...) }
}

const (
	notStarted = "Pending JobNotStarted: unpack job not yet started"
	incomplete = "Pending JobIncomplete: unpack job not completed"
)
