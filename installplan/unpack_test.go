// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

var images = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}

func lookup(t require.TestingT) v1alpha1.BundleLookup {
	o := olmcore.Operator{Name: "etcd.v1", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}, Bundle: olmcore.Bundle{Image: bundleImage}}
	l, err := bundle.NewLookup(o, noon.Add(-time.Minute))
	require.NoError(t, err)
	return l
}

func inOLM(name string) metav1.ObjectMeta {
	m := meta(name)
	m.Namespace = "olm"
	return m
}

const etcdCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: etcd.v1}
spec: {install: {strategy: deployment}}
`

func filled(files map[string]string) *corev1.ConfigMap {
	cm := unpackedBundle(time.Hour)
	cm.Namespace = "olm"
	cm.Annotations = map[string]string{"olm.sourceImage": bundleImage}
	cm.Data = files
	return cm
}

func emptyConfigMap() *corev1.ConfigMap {
	cm := filled(nil)
	cm.Annotations = nil
	return cm
}

// unpacking is the input in which everything but the Job is as it should be.
func unpacking(t require.TestingT, change ...func(*unpack.Input)) unpack.Input {
	in := unpack.Input{
		Now: noon, Lookup: lookup(t), Config: images,
		CatalogSource:  &v1alpha1.CatalogSource{ObjectMeta: inOLM("cool"), Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}},
		ConfigMap:      emptyConfigMap(),
		ServiceAccount: &corev1.ServiceAccount{ObjectMeta: inOLM(bundleName)},
		Role: &rbacv1.Role{ObjectMeta: inOLM(bundleName), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{bundleName}, Verbs: []string{"create", "get", "update"}}}},
		RoleBinding: &rbacv1.RoleBinding{ObjectMeta: inOLM(bundleName), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: bundleName},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: bundleName, Namespace: "olm"}}},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func unpackRound(t require.TestingT, in unpack.Input) unpack.Outcome {
	out, err := unpack.Bundle(allRead(in))
	require.NoError(t, err)
	return out
}

// allRead says that what the input lacks does not exist.
func allRead(in unpack.Input) unpack.Input {
	in.Jobs.Complete, in.Pods.Complete, in.OperatorGroups.Complete = true, true, true
	return in
}

// madeJob is the Job that Unpack asks for, as the cluster has it.
func madeJob(t require.TestingT, change ...func(*batchv1.Job)) *batchv1.Job {
	out := unpackRound(t, unpacking(t))
	require.Len(t, out.Actions, 1)
	j := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*batchv1.Job)
	j.UID, j.ResourceVersion, j.CreationTimestamp = "uid-job", "1", *ago(time.Minute)
	for _, f := range change {
		f(j)
	}
	return j
}

func ended(kind batchv1.JobConditionType, d time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		c := batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: *ago(d)}
		if kind == batchv1.JobFailed {
			c.Reason, c.Message = "DeadlineExceeded", "Job was active longer than specified deadline"
		}
		j.Status.Conditions = append(j.Status.Conditions, c)
	}
}

func withJobs(jobs ...*batchv1.Job) func(*unpack.Input) {
	return func(in *unpack.Input) { in.Jobs = olmcore.Found(jobs...) }
}

func annotated(key, value string) func(*unpack.Input) {
	return func(in *unpack.Input) {
		in.OperatorGroups = olmcore.Found(group(func(g *operatorsv1.OperatorGroup) { g.Annotations = map[string]string{key: value} }))
	}
}

func conditionsOf(l v1alpha1.BundleLookup) []string {
	var out []string
	for _, c := range l.Conditions {
		if c.Type != "BundleLookupNotPersisted" {
			out = append(out, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(string(c.Type), "BundleLookup"), c.Reason, c.Message))
		}
	}
	return out
}

const (
	notStarted = "Pending JobNotStarted: unpack job not yet started"
	incomplete = "Pending JobIncomplete: unpack job not completed"
)

// retried is the name of the second Job of the bundle.
const retried = "fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b59166kxhix"

func TestUnpack(t *testing.T) {
	pods := func(status corev1.PodStatus) func(*unpack.Input) {
		return func(in *unpack.Input) {
			in.Pods = olmcore.Found([]*corev1.Pod{{ObjectMeta: inOLM("pod"), Status: status}}...)
			in.Pods.Items[0].Labels = map[string]string{"job-name": bundleName}
		}
	}
	for name, c := range map[string]struct {
		in         unpack.Input
		want       []string
		conditions []string
		reasons    []string
		requeue    time.Duration
	}{
		"no CatalogSource": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource = nil }),
			conditions: []string{"Pending CatalogSourceMissing: referenced catalogsource not found"}},
		"a CatalogSource that is going": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource.DeletionTimestamp = ago(0) }),
			conditions: []string{"Pending CatalogSourceMissing: referenced catalogsource not found"}},
		"a lookup that failed is left alone": {in: unpacking(t, func(in *unpack.Input) {
			in.Lookup.Conditions = []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: "x"}}
		}), conditions: []string{"Failed x: "}},
		"a lookup that is not pending is left alone": {in: unpacking(t, func(in *unpack.Input) { in.Lookup.Conditions = nil })},
		"the ConfigMap comes first": {in: unpacking(t, func(in *unpack.Input) {
			in.ConfigMap, in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil, nil
		}),
			want: []string{"create ConfigMap olm/" + bundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"then who may write it": {in: unpacking(t, func(in *unpack.Input) { in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil }),
			want: []string{"create Role olm/" + bundleName + " (UnpackObjectAbsent)", "create ServiceAccount olm/" + bundleName + " (UnpackObjectAbsent)",
				"create RoleBinding olm/" + bundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"a Role that allows too little": {in: unpacking(t, func(in *unpack.Input) { in.Role.Rules = nil }),
			want: []string{"update Role olm/" + bundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a RoleBinding of somebody else": {in: unpacking(t, func(in *unpack.Input) { in.RoleBinding.Subjects[0].Name = "other" }),
			want: []string{"delete RoleBinding olm/" + bundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"then the Job": {in: unpacking(t), want: []string{"create Job olm/" + bundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"another catalog shares the ConfigMap": {in: unpacking(t, func(in *unpack.Input) { in.CatalogSource.UID = "uid-new" }),
			want: []string{"update ConfigMap olm/" + bundleName + " (UnpackObjectDiffers)", "create Job olm/" + bundleName + " (UnpackObjectAbsent)"}, conditions: []string{notStarted}},
		"a ConfigMap of somebody else": {in: unpacking(t, func(in *unpack.Input) { in.ConfigMap = &corev1.ConfigMap{ObjectMeta: inOLM(bundleName)} }),
			reasons: []string{"UnpackNameTaken"}, conditions: []string{notStarted}},
		"a Job that runs": {in: unpacking(t, withJobs(madeJob(t)), pods(corev1.PodStatus{Phase: corev1.PodRunning})), conditions: []string{incomplete}},
		"a Job without Pods, too soon to tell": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.CreationTimestamp = *ago(10 * time.Second) }))),
			conditions: []string{incomplete}, requeue: 20 * time.Second},
		"a Job without Pods": {in: unpacking(t, withJobs(madeJob(t))), conditions: []string{incomplete + ": Unpack job olm/" + bundleName + " has no pods"}},
		"a Job that a webhook changed": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds, j.Spec.Template.Spec.Tolerations = new(int64(7)), nil
		})), pods(corev1.PodStatus{Phase: corev1.PodRunning})), conditions: []string{incomplete}},
		"a Job for other images": {in: unpacking(t, withJobs(madeJob(t)), func(in *unpack.Input) { in.Config.OPMImage = "opm:2" }),
			want: []string{"delete Job olm/" + bundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a Job that OLM made": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.Annotations = nil })), pods(corev1.PodStatus{Phase: corev1.PodRunning})),
			conditions: []string{incomplete}},
		"a Job that OLM made for another image": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) {
			j.Annotations, j.Spec.Template.Spec.InitContainers[1].Image = nil, "other"
		}))), want: []string{"delete Job olm/" + bundleName + " (UnpackObjectDiffers)"}, conditions: []string{notStarted}},
		"a Job that is going": {in: unpacking(t, withJobs(madeJob(t, func(j *batchv1.Job) { j.DeletionTimestamp = ago(0) }))), conditions: []string{notStarted}},
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
		"an interval of its own": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, time.Minute))), annotated(unpack.AnnotationRetryInterval, "1m")),
			want: []string{"create Job olm/" + retried + " (UnpackRetried)"}, conditions: []string{notStarted}},
		"an interval that is none": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, time.Minute))), annotated(unpack.AnnotationRetryInterval, "soon")),
			reasons: []string{"UnpackSettingInvalid"}, requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}},
		"a clock that was moved back": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobFailed, -time.Hour)))), requeue: 5 * time.Minute,
			conditions: []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}},
		"a Job that ended, and its ConfigMap is not visible": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobComplete, time.Second)))),
			conditions: []string{incomplete}, requeue: 9 * time.Second},
		"a Job that ended, and left nothing": {in: unpacking(t, withJobs(madeJob(t, ended(batchv1.JobComplete, time.Minute)))), requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed BundleEmpty: unpack job finished but olm/" + bundleName + " holds no bundle"}},
		"a bundle without a version": {in: unpacking(t, loaded(map[string]string{"x.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}"}), withJobs(madeJob(t, ended(batchv1.JobComplete, time.Minute)))), requeue: 4 * time.Minute,
			conditions: []string{notStarted, "Failed BundleEmpty: unpack job finished but olm/" + bundleName + " holds no bundle"}},
		"the bundle is there":              {in: unpacking(t, loaded(map[string]string{"csv.yaml": etcdCSV}))},
		"the bundle is there, not the Job": {in: unpacking(t, loaded(map[string]string{"csv.yaml": etcdCSV}), func(in *unpack.Input) { in.Role, in.RoleBinding, in.ServiceAccount = nil, nil, nil })},
		"a bundle of another version": {in: unpacking(t, loaded(map[string]string{"csv.yaml": etcdCSV}), func(in *unpack.Input) { in.Lookup.Identifier = "etcd.v2" }),
			reasons: []string{"BundleInvalid"}, conditions: []string{notStarted, `Failed BundleInvalid: operator etcd.v2: its bundle's ClusterServiceVersion is named "etcd.v1"`}},
		"a bundle of two versions": {in: unpacking(t, loaded(map[string]string{"a.yaml": etcdCSV, "b.yaml": etcdCSV})),
			reasons: []string{"BundleInvalid", "BundleInvalid"}, conditions: []string{notStarted, "Failed BundleInvalid: operator etcd.v1: its bundle has more than one ClusterServiceVersion"}},
		"properties that are none": {in: unpacking(t, loaded(map[string]string{"csv.yaml": etcdCSV}), func(in *unpack.Input) { in.Lookup.Properties = "{" }),
			reasons: []string{"BundleInvalid"}, conditions: []string{notStarted, `Failed BundleInvalid: failed to load bundle properties for "etcd.v1": failed to unmarshal properties annotation: unexpected end of JSON input`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Laws(unpackResult, c.in))
			got := unpackRound(t, c.in)
			same(t, c.want, describe(got.Result))
			same(t, c.conditions, conditionsOf(got.Lookup))
			same(t, c.reasons, reasons(got.Result))
			same(t, c.requeue, got.RequeueAfter)
			require.Equal(t, strings.Contains(name, "bundle is there"), got.Bundle != nil)
		})
	}
}

func unpackResult(in unpack.Input) (olmcore.Result, error) {
	out, err := unpack.Bundle(allRead(in))
	return out.Result, err
}

func loaded(files map[string]string) func(*unpack.Input) {
	return func(in *unpack.Input) { in.ConfigMap = filled(files) }
}

func TestTheJobIsTheOneThatOLMMakes(t *testing.T) {
	j := madeJob(t)
	require.Equal(t, map[string]string{"olm.managed": "true", "operatorframework.io/bundle-unpack-ref": bundleName}, j.Labels)
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: bundleName, UID: types.UID("uid-" + bundleName),
		Controller: new(false), BlockOwnerDeletion: new(false)}}, j.OwnerReferences)
	require.EqualValues(t, 300, *j.Spec.TTLSecondsAfterFinished)
	require.EqualValues(t, 3, *j.Spec.BackoffLimit)
	require.EqualValues(t, 600, *j.Spec.ActiveDeadlineSeconds)
	pod := j.Spec.Template.Spec
	require.Equal(t, []corev1.LocalObjectReference{{Name: "pull"}}, pod.ImagePullSecrets)
	require.Equal(t, []string{"util", "pull", "extract"}, []string{pod.InitContainers[0].Name, pod.InitContainers[1].Name, pod.Containers[0].Name})
	require.Equal(t, corev1.PullAlways, pod.InitContainers[1].ImagePullPolicy)
	require.Equal(t, []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", "olm", "-c", bundleName, "-z"}, pod.Containers[0].Command)
	require.Nil(t, pod.SecurityContext.RunAsUser)
	pinned := unpacking(t, func(in *unpack.Input) {
		in.Lookup.Path = "quay.io/x@sha256:1"
		in.Config.RunAsUser = 1001
		in.Role.Rules[0].ResourceNames, in.RoleBinding.RoleRef.Name = nil, ""
	})
	out := unpackRound(t, pinned)
	require.NotEmpty(t, out.Actions, "the name is a function of the path")
}

func TestTimeoutsOfAJob(t *testing.T) {
	for text, want := range map[string]*int64{"2m": new(int64(120)), "500ms": new(int64(1)), "1500ms": new(int64(2)), "0": nil, "-1s": new(int64(600)), "soon": new(int64(600))} {
		out := unpackRound(t, unpacking(t, annotated(unpack.AnnotationTimeout, text)))
		require.Equal(t, want, out.Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds, text)
	}
	two := unpacking(t, annotated(unpack.AnnotationTimeout, "2m"))
	two.OperatorGroups.Items = append(two.OperatorGroups.Items, group(func(g *operatorsv1.OperatorGroup) { g.Name = "other" }))
	require.EqualValues(t, 600, *unpackRound(t, two).Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds)
	never := unpacking(t, func(in *unpack.Input) { in.Config.UnpackTimeoutDisabled = true })
	require.Nil(t, unpackRound(t, never).Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds)
}

func TestFailedTriesAreKeptInBounds(t *testing.T) {
	var jobs []*batchv1.Job
	for i := range 9 {
		jobs = append(jobs, madeJob(t, ended(batchv1.JobFailed, time.Duration(i+1)*time.Second), func(j *batchv1.Job) {
			j.Name = fmt.Sprintf("j%d", i)
		}))
	}
	out := unpackRound(t, unpacking(t, withJobs(jobs...)))
	same(t, []string{"delete Job olm/j5 (UnpackHistory)", "delete Job olm/j6 (UnpackHistory)", "delete Job olm/j7 (UnpackHistory)"}, describe(out.Result))
	require.Equal(t, metav1.DeletePropagationBackground, out.Actions[0].(olmcore.Delete).PropagationPolicy)
	running := madeJob(t, func(j *batchv1.Job) { j.Name = "running" })
	out = unpackRound(t, unpacking(t, withJobs(append(jobs, running)...)))
	require.Empty(t, out.Actions, "one that runs is the newest, whatever failed")
}

func TestBadUnpackInput(t *testing.T) {
	for field, change := range map[string]func(*unpack.Input){
		"Now":                     func(in *unpack.Input) { in.Now = time.Time{} },
		"Lookup.path":             func(in *unpack.Input) { in.Lookup.Path = "" },
		"Lookup.catalogSourceRef": func(in *unpack.Input) { in.Lookup.CatalogSourceRef = nil },
		"Config.OPMImage":         func(in *unpack.Input) { in.Config.OPMImage = "" },
		"Config.UtilImage":        func(in *unpack.Input) { in.Config.UtilImage = "" },
		"Config.MaxUnpackJobs":    func(in *unpack.Input) { in.Config.MaxUnpackJobs = -1 },
		"Config.UnpackJobTTL":     func(in *unpack.Input) { in.Config.UnpackJobTTL = -1 },
	} {
		_, err := unpack.Bundle(allRead(unpacking(t, change)))
		var problem *olmcore.InputError
		require.ErrorAs(t, err, &problem, field)
		require.Equal(t, field, problem.Field)
	}
}

func zipped(t testing.TB, text string) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return []byte(base64.StdEncoding.EncodeToString(buf.Bytes()))
}

func TestLoadBundle(t *testing.T) {
	cm := filled(map[string]string{
		"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}\n",
		"a.yaml": etcdCSV, "annotations.yaml": "annotations: {a: b}\n", "README.md": "- x\n: y", "bad.yaml": "{",
	})
	bundle, found, err := unpack.LoadBundle(cm)
	require.NoError(t, err)
	require.Equal(t, bundleImage, bundle.Image)
	require.Len(t, bundle.Objects, 2)
	require.Equal(t, "etcd.v1", bundle.Objects[0].GetName(), "in the order of the keys")
	same(t, []string{"ExtraDocumentsIgnored", "ManifestSkipped"}, reasons(olmcore.Result{Diagnostics: found}))

	bundle, found, err = unpack.LoadBundle(filled(map[string]string{"a.yaml": strings.Replace(etcdCSV, "spec: {", "spec: {MinKubeVersion: 1.30.0, ", 1)}))
	require.NoError(t, err)
	require.Equal(t, "1.30.0", bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.MinKubeVersion)
	require.Len(t, found, 1)
	require.Equal(t, installplan.ReasonKeyCase, found[0].Reason)
	require.Equal(t, "a.yaml: spec.MinKubeVersion is read as minKubeVersion, which an API server does not", found[0].Message)

	packed := filled(nil)
	packed.Annotations["olm.contentEncoding"] = "gzip+base64"
	packed.BinaryData = map[string][]byte{"a.yaml": zipped(t, etcdCSV)}
	bundle, _, err = unpack.LoadBundle(packed)
	require.NoError(t, err)
	require.Len(t, bundle.Objects, 1)
	plain := unpackRound(t, unpacking(t, loaded(map[string]string{"a.yaml": etcdCSV}))).Digest
	require.Equal(t, plain, unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = packed })).Digest, "the encoding is no part of the content")
	require.NotEqual(t, plain, unpackRound(t, unpacking(t, loaded(map[string]string{"a.yaml": etcdCSV + "\n"}))).Digest)

	packed.BinaryData["a.yaml"] = []byte("no gzip")
	_, _, err = unpack.LoadBundle(packed)
	require.Error(t, err)
	_, _, err = unpack.LoadBundle(nil)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestABundleMayBeJSON: what is JSON is read as JSON, so that of a number that is written
// as a fraction, and of escapes that YAML does not know, nothing is lost.
func TestABundleMayBeJSON(t *testing.T) {
	bundle, found, err := unpack.LoadBundle(filled(map[string]string{
		"a.json": ` {"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},
			"spec":{"displayName":"\ud83d\ude00","install":{"strategy":"deployment","spec":{"deployments":[{"name":"d","spec":{"replicas":2.0}}]}}}}`,
		"b.json": `{"Kind":"ServiceAccount","metadata":{"name":"b"}}`,
		"c.json": `["no manifest"]`,
		"d.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"yaml"}, data: {a: b}}`,
	}))
	require.NoError(t, err)
	require.Len(t, bundle.Objects, 3)
	csv := bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
	require.Equal(t, "\U0001f600", csv.Spec.DisplayName)
	require.Equal(t, int32(2), *csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas)
	require.Equal(t, &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "b"}}, bundle.Objects[1])
	require.Equal(t, map[string]string{"a": "b"}, bundle.Objects[2].(*corev1.ConfigMap).Data)
	same(t, []string{"KeyCase", "ManifestSkipped"}, reasons(olmcore.Result{Diagnostics: found}))
}

// TestABundleIsUnpackedInTheEnd: whatever writes are lost, one Job at a time
// runs, none runs before its permissions, and once one of them succeeds the
// bundle is there.
func TestABundleIsUnpackedInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		faults(t, c)
		failures := rapid.IntRange(0, 3).Draw(t, "failures")
		var failedAt time.Time
		for range 400 {
			c.RestartController()
			in, err := unpack.Gather(t.Context(), c, ns, lookup(t), images)
			require.NoError(t, err)
			in.Now = c.Now()
			out := unpackRound(t, in)
			if out.Bundle != nil {
				require.Empty(t, out.Actions)
				return
			}
			_ = olmcore.Run(t.Context(), c, out.Actions)
			jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
			require.NoError(t, err)
			running := slices.DeleteFunc(jobs, func(j *batchv1.Job) bool { return len(j.Status.Conditions) > 0 })
			require.LessOrEqual(t, len(running), 1)
			for _, j := range running {
				require.False(t, c.Now().Before(failedAt.Add(installplan.DefaultUnpackRetryInterval)), "too soon")
				binding, err := olmcore.Get[*rbacv1.RoleBinding](t.Context(), c, "olm", bundleName)
				require.NoError(t, err)
				require.NotNil(t, binding)
				end := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}
				if failures > 0 {
					failures--
					end.Type, end.Reason, failedAt = batchv1.JobFailed, "BackoffLimitExceeded", c.Now()
				} else {
					require.NoError(t, fake.Edit(c, "olm", bundleName, func(cm *corev1.ConfigMap) {
						cm.Annotations = map[string]string{"olm.sourceImage": bundleImage}
						cm.Data = map[string]string{"csv.yaml": etcdCSV}
					}))
				}
				after := j.DeepCopy()
				after.Status.Conditions = []batchv1.JobCondition{end}
				require.NoError(t, c.UpdateStatus(after))
			}
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "time"))
		}
		t.Fatal("it is never unpacked")
	})
}
