// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// TestUnpackingCreatesObjectsAndReportsProgress checks the writes and the status of unpacking for each state of the Job
// and its objects.
//
// It includes OLM's cases:
//   - Without the CatalogSource, the lookup is pending, and nothing is created.
//   - An image that cannot be pulled is in the message, with advice.
//   - A timeout fails the unpacking, and another image recovers it.
//   - A failed try is repeated, and a successful one is not.
func TestUnpackingCreatesObjectsAndReportsProgress(t *testing.T) {
	pods := func(status corev1.PodStatus) func(*unpack.Input) {
		return func(in *unpack.Input) {
			in.Pods = olmcore.Found([]*corev1.Pod{{ObjectMeta: InOLM("pod"), Status: status}}...)
			in.Pods.Items[0].Labels = map[string]string{"job-name": BundleName}
		}
	}
	const empty = "Failed BundleEmpty: unpack job finished but olm/" + BundleName + " contains no bundle"
	finished := withJobs(madeJob(t, ended(batchv1.JobComplete, time.Minute)))
	for name, c := range map[string]struct {
		in         unpack.Input
		want       []string
		conditions []string
		reasons    []string
		requeue    time.Duration
	}{
		"no CatalogSource": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource = nil }),
			conditions: []string{"Pending CatalogSourceMissing: referenced catalogsource not found"}},
		"a CatalogSource that is being deleted": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource.DeletionTimestamp = Ago(0) }),
			conditions: []string{"Pending CatalogSourceMissing: referenced catalogsource not found"}},
		"a lookup that failed is not changed": {in: unpacking(t, func(in *unpack.Input) {
			in.Lookup.Conditions = []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: "x"}}
		}), conditions: []string{"Failed x: "}},
		"a lookup that is not pending is not changed": {in: unpacking(t, func(in *unpack.Input) { in.Lookup.Conditions = nil })},
		"the ConfigMap is created first": {in: unpacking(t, func(in *unpack.Input) {
			in.ConfigMap, in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil, nil
		}),
			want: []string{"create ConfigMap olm/" + BundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"then its permissions": {in: unpacking(t, func(in *unpack.Input) { in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil }),
			want: []string{"create Role olm/" + BundleName + " (UnpackObjectAbsent)", "create ServiceAccount olm/" + BundleName + " (UnpackObjectAbsent)",
				"create RoleBinding olm/" + BundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"a Role that allows too little": {in: unpacking(t, func(in *unpack.Input) { in.Role.Rules = nil }),
			want: []string{"update Role olm/" + BundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a RoleBinding of another subject": {in: unpacking(t, func(in *unpack.Input) { in.RoleBinding.Subjects[0].Name = "other" }),
			want: []string{"delete RoleBinding olm/" + BundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"then the Job": {
			in: unpacking(t), want: []string{"create Job olm/" + BundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted},
		},
		"another catalog shares the ConfigMap": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource.UID = "uid-new" }),
			want: []string{"update ConfigMap olm/" + BundleName + " (UnpackObjectDiffers)", "create Job olm/" + BundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"an unmanaged ConfigMap": {in: unpacking(t, func(in *unpack.Input) { in.ConfigMap = &corev1.ConfigMap{ObjectMeta: InOLM(BundleName)} }),
			reasons: []string{"UnpackNameTaken"}, conditions: []string{notStarted}},
		"a Job that runs": {
			in: unpacking(t, withJobs(madeJob(t)), pods(corev1.PodStatus{Phase: corev1.PodRunning})), conditions: []string{incomplete},
		},
		"a new Job without Pods": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.CreationTimestamp = *Ago(10 * time.Second) }))),
			conditions: []string{incomplete}, requeue: 20 * time.Second},
		"a Job without Pods": {
			in: unpacking(t, withJobs(madeJob(t))), conditions: []string{incomplete + ": Unpack job olm/" + BundleName + " has no pods"},
		},
		"a Job that a webhook changed": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds, j.Spec.Template.Spec.Tolerations = new(int64(7)), nil
		})), pods(corev1.PodStatus{Phase: corev1.PodRunning})), conditions: []string{incomplete}},
		"a Job for other images": {in: unpacking(t, withJobs(madeJob(t)), func(in *unpack.Input) { in.Config.OPMImage = "opm:2" }),
			want: []string{"delete Job olm/" + BundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a Job that OLM created": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.Annotations = nil })), pods(corev1.PodStatus{Phase: corev1.PodRunning})),
			conditions: []string{incomplete}},
		"a Job that OLM created for another image": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) {
			j.Annotations, j.Spec.Template.Spec.InitContainers[1].Image = nil, "other"
		}))), want: []string{"delete Job olm/" + BundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a Job that is being deleted": {
			in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.DeletionTimestamp = Ago(0) }))), conditions: []string{notStarted},
		},
		"an image that cannot be pulled": {in: unpacking(t, withJobs(madeJob(t)), pods(corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "pull", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not there"}}},
			{Name: "util"}, {Name: "done", Ready: true}}})),
			conditions: []string{incomplete + ": Unpack pod(olm/pod) container(pull) is pending. Reason: ErrImagePull, Message: not there | Unpack pod(olm/pod) container(util) is pending"},
			reasons:    []string{"UnpackImageUnavailable"}},
		"a Pod that is not scheduled": {in: unpacking(t, withJobs(madeJob(t)), pods(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}})),
			conditions: []string{incomplete + ": Unpack pod(olm/pod) is not scheduled: no node"}},
		"a Job that failed": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, time.Minute)))), requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}},
		"a Job that failed long ago": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, 5*time.Minute)))),
			want: []string{"create Job olm/" + retried + " (UnpackRetried)"}, conditions: []string{notStarted}},
		"an interval of the OperatorGroup": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, time.Minute))), annotated(unpack.AnnotationRetryInterval, "1m")),
			want: []string{"create Job olm/" + retried + " (UnpackRetried)"}, conditions: []string{notStarted}},
		"an invalid interval": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, time.Minute))), annotated(unpack.AnnotationRetryInterval, "soon")),
			reasons: []string{"UnpackSettingInvalid"}, requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}},
		"a clock that was set back": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, -time.Hour)))), requeue: 5 * time.Minute,
			conditions: []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}},
		"a Job that has just succeeded without a visible bundle": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobComplete, time.Second)))),
			conditions: []string{incomplete}, requeue: 9 * time.Second},
		"a Job that succeeded without a bundle": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobComplete, time.Minute)))), requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed BundleEmpty: unpack job finished but olm/" + BundleName + " contains no bundle"}},
		"a bundle without a version": {in: unpacking(t, loaded(map[string]string{"x.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}"}), withJobs(madeJob(t, ended(batchv1.JobComplete, time.Minute)))), requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed BundleEmpty: unpack job finished but olm/" + BundleName + " contains no bundle"}},
		"a version that cannot be decoded": {in: unpacking(t, loaded(map[string]string{
			"a.yaml":   "kind: Service\napiVersion: v1\nmetadata: {name: x}",
			"csv.yaml": strings.Replace(EtcdCSV, "spec: {", "spec: {version: latest, ", 1)}), finished), requeue: 4 * time.Minute,
			conditions: []string{notStarted, empty + ": csv.yaml: invalid input: " +
				`ClusterServiceVersion cannot be decoded: Invalid character(s) found in major number "0latest"`}},
		"a version that is not valid YAML": {in: unpacking(t, loaded(map[string]string{
			"csv.yaml": "kind: ClusterServiceVersion\n\tspec: {"}), finished), requeue: 4 * time.Minute,
			conditions: []string{notStarted, empty + ": csv.yaml: yaml: line 2: " +
				"found a tab character that violates indentation"}},
		"a version that is the second document": {in: unpacking(t, loaded(map[string]string{
			"x.yaml": "kind: Service\napiVersion: v1\nmetadata: {name: x}\n---\n" + EtcdCSV}), finished), requeue: 4 * time.Minute,
			conditions: []string{notStarted, empty + ": " +
				"x.yaml contains more than one document, and only the first one is read"}},
		"a version that cannot be inflated": {in: unpacking(t, func(in *unpack.Input) {
			in.ConfigMap = Filled(nil)
			in.ConfigMap.Annotations["olm.contentEncoding"] = "gzip+base64"
			in.ConfigMap.BinaryData = map[string][]byte{"csv.yaml": []byte("x")}
		}, finished), requeue: 4 * time.Minute,
			conditions: []string{notStarted, empty + ": csv.yaml: unexpected EOF"}},
		"the bundle is complete": {in: unpacking(t, loaded(map[string]string{"csv.yaml": EtcdCSV}))},
		"the bundle is complete, without the Job": {
			in: unpacking(t, loaded(map[string]string{"csv.yaml": EtcdCSV}), func(in *unpack.Input) { in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil }),
		},
		"a bundle of another version": {in: unpacking(t, loaded(map[string]string{"csv.yaml": EtcdCSV}), func(in *unpack.Input) { in.Lookup.Identifier = "etcd.v2" }),
			reasons: []string{"BundleInvalid"}, conditions: []string{notStarted, `Failed BundleInvalid: operator etcd.v2: its bundle's ClusterServiceVersion is named "etcd.v1"`}},
		"a bundle of two versions": {in: unpacking(t, loaded(map[string]string{"a.yaml": EtcdCSV, "b.yaml": EtcdCSV})),
			reasons: []string{"BundleInvalid", "BundleInvalid"}, conditions: []string{notStarted, "Failed BundleInvalid: operator etcd.v1: its bundle has more than one ClusterServiceVersion"}},
		"invalid properties": {in: unpacking(t, loaded(map[string]string{"csv.yaml": EtcdCSV}), func(in *unpack.Input) { in.Lookup.Properties = "{" }),
			reasons: []string{"BundleInvalid"}, conditions: []string{notStarted, `Failed BundleInvalid: failed to load bundle properties for "etcd.v1": failed to unmarshal properties annotation: unexpected end of JSON input`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Laws(unpackResult, c.in))
			got := unpackRound(t, c.in)
			Same(t, c.want, Describe(got.Result))
			Same(t, c.conditions, ConditionsOf(got.Lookup))
			Same(t, c.reasons, Reasons(got.Result))
			Same(t, c.requeue, got.RequeueAfter)
			require.Equal(t, strings.Contains(name, "bundle is complete"), got.Bundle != nil)
		})
	}
}

// TestRecordedMessageIsNotWrittenAgain checks that a message is not written again only to escape invisible characters.
// New messages escape them.
func TestRecordedMessageIsNotWrittenAgain(t *testing.T) {
	const raw = "unpack job not completed: Unpack pod(olm/pod) is not scheduled: no\u202enode"
	for recorded, want := range map[string]string{
		raw:                        raw,
		"unpack job not completed": `unpack job not completed: Unpack pod(olm/pod) is not scheduled: no\u202enode`,
	} {
		in := unpacking(t, withJobs(madeJob(t)))
		pod := &corev1.Pod{ObjectMeta: InOLM("pod"), Status: corev1.PodStatus{Phase: corev1.PodPending}}
		pod.Labels = map[string]string{"job-name": BundleName}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no\u202enode"}}
		in.Pods = olmcore.Found(pod)
		in.Lookup.Conditions = []v1alpha1.BundleLookupCondition{{
			Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: "JobIncomplete", Message: recorded,
		}}
		require.Equal(t, want, unpackRound(t, in).Lookup.GetCondition(v1alpha1.BundleLookupPending).Message)
	}
}

func TestFinishedLookupIsNotChanged(t *testing.T) {
	for name, conditions := range map[string][]v1alpha1.BundleLookupCondition{
		"failed": {{Type: v1alpha1.BundleLookupPending, Status: "True"}, {Type: v1alpha1.BundleLookupFailed, Status: "True", Reason: "x"}},
		"done":   nil,
	} {
		in := unpacking(t, func(in *unpack.Input) { in.Lookup.Conditions, in.ConfigMap = conditions, nil })
		out := unpackRound(t, in)
		require.True(t, out.Empty(), name)
		require.Equal(t, conditions, out.Lookup.Conditions, name)
	}
}

// TestUnpackingWaitsForDeletedObjects checks that unpacking waits for objects that are being deleted or have no UID,
// and that nothing is created for them.
func TestUnpackingWaitsForDeletedObjects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*unpack.Input)
		want   string
	}{
		"a CatalogSource without UID": {
			func(in *unpack.Input) { in.CatalogSource.UID = "" }, "Pending CatalogSourceMissing: referenced catalogsource not found",
		},
		"a CatalogSource that is being deleted": {
			func(in *unpack.Input) { in.CatalogSource.DeletionTimestamp = Ago(0) }, "Pending CatalogSourceMissing: referenced catalogsource not found",
		},
		"a ConfigMap that is being deleted": {
			func(in *unpack.Input) { in.ConfigMap.DeletionTimestamp = Ago(0) }, notStarted,
		},
		"a ConfigMap without UID": {func(in *unpack.Input) { in.ConfigMap.UID = "" }, notStarted},
		"a complete ConfigMap that is being deleted": {func(in *unpack.Input) {
			in.ConfigMap = Filled(map[string]string{"csv.yaml": EtcdCSV})
			in.ConfigMap.DeletionTimestamp = Ago(0)
		}, notStarted},
		"a ServiceAccount that is being deleted": {func(in *unpack.Input) { in.ServiceAccount.DeletionTimestamp = Ago(0) }, notStarted},
		"a Role that is being deleted":           {func(in *unpack.Input) { in.Role.DeletionTimestamp = Ago(0) }, notStarted},
		"a RoleBinding that is being deleted":    {func(in *unpack.Input) { in.RoleBinding.DeletionTimestamp = Ago(0) }, notStarted},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, c.change))
			require.Empty(t, out.Actions)
			require.Equal(t, []string{c.want}, ConditionsOf(out.Lookup))
		})
	}
}

func TestConditionTimeChangesWithItsReason(t *testing.T) {
	Same(t, Ago(0), unpackRound(t, unpacking(t, withJobs(madeJob(t)))).Lookup.GetCondition(v1alpha1.BundleLookupPending).LastTransitionTime)
	Same(t, Ago(time.Minute), unpackRound(t, unpacking(t)).Lookup.GetCondition(v1alpha1.BundleLookupPending).LastTransitionTime)
}

func TestInvalidBundleHasNoDigest(t *testing.T) {
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) {
		in.ConfigMap = Filled(map[string]string{"csv.yaml": EtcdCSV})
		in.Lookup.Properties = "{"
	}))
	require.Empty(t, out.Digest)
	require.Nil(t, out.Bundle)
}

func TestInputErrors(t *testing.T) {
	for field, change := range map[string]func(*unpack.Input){
		"Now":                     func(in *unpack.Input) { in.Now = time.Time{} },
		"Lookup.path":             func(in *unpack.Input) { in.Lookup.Path = "" },
		"Lookup.catalogSourceRef": func(in *unpack.Input) { in.Lookup.CatalogSourceRef = nil },
		"Config.OPMImage":         func(in *unpack.Input) { in.Config.OPMImage = "" },
		"Config.UtilImage":        func(in *unpack.Input) { in.Config.UtilImage = "" },
		"Config.RunAsUser":        func(in *unpack.Input) { in.Config.RunAsUser = -1 },
		"Config.UnpackTimeout":    func(in *unpack.Input) { in.Config.UnpackTimeout = new(-time.Second) },
	} {
		_, err := unpack.Bundle(allRead(unpacking(t, change)))
		var problem *olmcore.InputError
		require.ErrorAs(t, err, &problem, field)
		require.Equal(t, field, problem.Field)
	}
}

func TestGatherReadsTheNamespaceOfTheCatalog(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: InOLM(BundleName)}
	pod := &corev1.Pod{ObjectMeta: InOLM("pod")}
	pod.Labels = map[string]string{"job-name": BundleName}
	full := unpacking(t)
	objects := []olmcore.Object{full.CatalogSource, full.ConfigMap, full.Role, full.RoleBinding, full.ServiceAccount, job, pod, Group()}
	in, err := unpack.Gather(t.Context(), Reader(t, objects...), NS, Lookup(t), Images)
	require.NoError(t, err)
	require.NotNil(t, in.CatalogSource)
	require.Equal(t, olmcore.Found(job), in.Jobs, "found without its label")
	require.Equal(t, olmcore.Found(pod), in.Pods)
	require.Len(t, in.OperatorGroups.Items, 1)
	for _, kind := range []string{"CatalogSource", "ConfigMap", "Role", "RoleBinding", "ServiceAccount", "Job", "Pod", "OperatorGroup"} {
		r := Reader(t, objects...)
		r.Fail = kind
		_, err := unpack.Gather(t.Context(), r, NS, Lookup(t), Images)
		require.Error(t, err, kind)
	}
	_, err = unpack.Gather(t.Context(), Reader(t), NS, v1alpha1.BundleLookup{}, Images)
	require.NoError(t, err, "Bundle reports the problem")
}

func BenchmarkLoad(b *testing.B) {
	in := unpacking(b, loaded(map[string]string{"csv.yaml": EtcdCSV}))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = unpack.Bundle(allRead(in))
	}
}

func ExampleBundle() {
	o := olmcore.Operator{Name: "etcd.v1", Bundle: olmcore.Bundle{Image: BundleImage}}
	o.Catalog.Namespace, o.Catalog.Name = "olm", "cool"
	lookup, err := bundle.NewLookup(o, Noon)
	if err != nil {
		panic(err)
	}
	source := &v1alpha1.CatalogSource{ObjectMeta: InOLM("cool")}
	out, err := unpack.Bundle(allRead(unpack.Input{Now: Noon, Lookup: lookup, CatalogSource: source, Config: Images}))
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		fmt.Println(record.Verb, record.Target, string(record.Object))
	}
	// Output:
	// create ConfigMap olm/fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"olm.managed":"true"},"name":"fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0","namespace":"olm","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","blockOwnerDeletion":false,"controller":false,"kind":"CatalogSource","name":"cool","uid":"uid-cool"}]}}
}

// allRead marks all lists of an Input as read.
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

// madeJob returns the Job that Bundle creates, as the cluster stores it.
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

// unpacking returns an Input in which only the Job is missing.
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
