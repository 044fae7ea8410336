// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

// unpackedSoFar asks for a bundle as often as it takes until nothing is written
// any more.
func unpackedSoFar(t testing.TB, c *fake.Cluster, l v1alpha1.BundleLookup) (unpack.Outcome, []olmcore.Object) {
	t.Helper()
	var made []olmcore.Object
	for range 5 {
		in, err := unpack.Gather(t.Context(), c, ns, l, images)
		require.NoError(t, err)
		in.Now = c.Now()
		out := unpackRound(t, in)
		if len(out.Actions) == 0 {
			return out, made
		}
		for _, a := range out.Actions {
			made = append(made, a.(olmcore.Create).Object)
		}
		require.NoError(t, olmcore.Run(t.Context(), c, out.Actions))
	}
	t.Fatal("it does not come to rest")
	return unpack.Outcome{}, nil
}

// unpackWorld has a CatalogSource, and a group with annotations.
func unpackWorld(t testing.TB, annotations map[string]string) *fake.Cluster {
	t.Helper()
	c := world(t, &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}, Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}})
	require.NoError(t, fake.Edit(c, ns, "group", func(g *operatorsv1.OperatorGroup) { g.Annotations = annotations }))
	return c
}

const unpackJobText = `
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  namespace: olm
  labels: {olm.managed: "true", operatorframework.io/bundle-unpack-ref: NAME}
  owners: [ConfigMap NAME]
spec:
  ttlSecondsAfterFinished: 300
  backoffLimit: 3
  activeDeadlineSeconds: 120
  template:
    metadata:
      name: NAME
      labels: {olm.managed: "true", operatorframework.io/bundle-unpack-ref: NAME}
    spec:
      restartPolicy: Never
      serviceAccountName: NAME
      imagePullSecrets: [{name: pull}]
      nodeSelector: {kubernetes.io/os: linux}
      securityContext: {seccompProfile: {type: RuntimeDefault}}
      volumes: [{name: bundle, emptyDir: {}}, {name: util, emptyDir: {}}]
      initContainers:
      - name: util
        image: "util:1"
        command: [/bin/cp, -Rv, /bin/cpb, /util/cpb]
        volumeMounts: [{name: util, mountPath: /util}]
        resources: {requests: {cpu: 10m, memory: 50Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        terminationMessagePolicy: FallbackToLogsOnError
      - name: pull
        image: PATH
        imagePullPolicy: PULL
        command: [/util/cpb, /bundle]
        volumeMounts: [{name: bundle, mountPath: /bundle}, {name: util, mountPath: /util}]
        resources: {requests: {cpu: 10m, memory: 50Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        terminationMessagePolicy: FallbackToLogsOnError
      containers:
      - name: extract
        image: "opm:1"
        command: [opm, alpha, bundle, extract, -m, /bundle/, -n, olm, -c, NAME, -z]
        env: [{name: CONTAINER_IMAGE, value: PATH}]
        volumeMounts: [{name: bundle, mountPath: /bundle}]
        resources: {requests: {cpu: 10m, memory: 50Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        terminationMessagePolicy: FallbackToLogsOnError
      tolerations:
      - {key: kubernetes.io/arch, operator: Equal, value: amd64}
      - {key: kubernetes.io/arch, operator: Equal, value: arm64}
      - {key: kubernetes.io/arch, operator: Equal, value: ppc64le}
      - {key: kubernetes.io/arch, operator: Equal, value: s390x}
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      - {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
`

// TestWhatUnpacksABundle from nothing but its catalog: every object, whole.
func TestWhatUnpacksABundle(t *testing.T) {
	const digest = "quay.io/operatorhubio/etcd@sha256:0123"
	for name, c := range map[string]struct{ image, pull string }{
		"an image with a tag":    {bundleImage, "Always"},
		"an image with a digest": {digest, "IfNotPresent"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := unpackWorld(t, map[string]string{unpack.AnnotationTimeout: "2m"})
			l := lookup(t)
			l.Path = c.image
			out, objects := unpackedSoFar(t, cluster, l)
			same(t, []string{incomplete}, conditionsOf(out.Lookup))
			got := map[string]string{}
			var unpacks, hash string
			for _, o := range objects {
				kind := olmcore.KeyOf(o).Kind
				require.NotContains(t, got, kind, "made twice")
				if kind == "Job" {
					unpacks = o.GetName()
					hash = o.GetAnnotations()["olmcore/unpack-spec-hash"]
					o = o.DeepCopyObject().(olmcore.Object)
					o.SetAnnotations(nil)
				}
				got[kind] = normal(t, shown(t, cluster, o))
			}
			require.NotEmpty(t, hash)
			require.Len(t, unpacks, 63)
			if c.image == bundleImage {
				require.Equal(t, bundleName, unpacks)
			}
			fill := strings.NewReplacer("NAME", unpacks, "PATH", fmt.Sprintf("%q", c.image), "PULL", c.pull)
			want := map[string]string{}
			for kind, text := range map[string]string{
				"Job":            unpackJobText,
				"ConfigMap":      `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: olm, name: NAME, labels: {olm.managed: "true"}, owners: [CatalogSource cool]}}`,
				"ServiceAccount": `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: olm, name: NAME, labels: {olm.managed: "true"}, owners: [ConfigMap NAME]}}`,
				"Role": `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: olm, name: NAME, labels: {olm.managed: "true"}, owners: [ConfigMap NAME]},
					rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [NAME], verbs: [create, get, update]}]}`,
				"RoleBinding": `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: olm, name: NAME, labels: {olm.managed: "true"}, owners: [ConfigMap NAME]},
					roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}, subjects: [{kind: ServiceAccount, name: NAME, namespace: olm}]}`,
			} {
				want[kind] = normal(t, fill.Replace(text))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnUnpackedBundleIsItsObjects: a version and two definitions, whose Job is
// done.
func TestAnUnpackedBundleIsItsObjects(t *testing.T) {
	c := unpackWorld(t, nil)
	l := lookup(t)
	l.Path = "quay.io/operatorhubio/etcd@sha256:0123"
	l.Properties = `{"properties":[{"type":"olm.package","value":{"packageName":"etcd"}}]}`
	unpackedSoFar(t, c, l)
	jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	crds := []string{"backups.example.com", "clusters.example.com"}
	require.NoError(t, fake.Edit(c, "olm", jobs[0].Name, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{"olm.sourceImage": l.Path}
		cm.Data = map[string]string{"csv.yaml": etcdCSV}
		for _, name := range crds {
			cm.Data[name+".yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
		}
	}))
	require.NoError(t, c.FinishJob("olm", jobs[0].Name, ""))
	out, _ := unpackedSoFar(t, c, l)
	require.Empty(t, conditionsOf(out.Lookup), "it is not pending any more")
	require.Equal(t, corev1.ConditionTrue, out.Lookup.GetCondition("BundleLookupNotPersisted").Status, "that is for the plan to take away")
	var got []string
	for _, o := range out.Bundle.Objects {
		got = append(got, olmcore.KeyOf(o).Kind+" "+o.GetName())
	}
	require.Equal(t, []string{"CustomResourceDefinition backups.example.com", "CustomResourceDefinition clusters.example.com", "ClusterServiceVersion etcd.v1"}, got)
	require.Equal(t, []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"etcd"}`)}}, out.Bundle.Properties)
	require.Equal(t, l.Path, out.Bundle.Image)
}

// TestAJobOfOldenTimesIsFound by its name, without the label that ties it to its
// bundle.
func TestAJobOfOldenTimesIsFound(t *testing.T) {
	c := unpackWorld(t, nil)
	unpackedSoFar(t, c, lookup(t))
	require.NoError(t, fake.Edit(c, "olm", bundleName, func(j *batchv1.Job) { j.Labels = nil }))
	j := fake.Find[*batchv1.Job](c, "olm", bundleName).DeepCopy()
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded",
		Message: "Job was active longer than specified deadline", LastTransitionTime: metav1.NewTime(c.Now())}}
	require.NoError(t, c.UpdateStatus(j))
	out, _ := unpackedSoFar(t, c, lookup(t))
	same(t, []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}, conditionsOf(out.Lookup))
	require.Equal(t, 5*time.Minute, out.RequeueAfter)
}

// TestSettingsOfUnpacking: what the annotations of a namespace's groups come to,
// and what is said about those that cannot be read.
func TestSettingsOfUnpacking(t *testing.T) {
	const (
		timeout  = unpack.AnnotationTimeout
		interval = unpack.AnnotationRetryInterval
	)
	groups := func(annotations ...map[string]string) []*operatorsv1.OperatorGroup {
		var out []*operatorsv1.OperatorGroup
		for i, a := range annotations {
			out = append(out, group(func(g *operatorsv1.OperatorGroup) { g.ObjectMeta = meta(fmt.Sprintf("g%d", i)); g.Annotations = a }))
		}
		return out
	}
	type settings = map[string]string
	for name, c := range map[string]struct {
		groups   []*operatorsv1.OperatorGroup
		deadline int64
		wait     time.Duration // after a failure just now
		said     string
	}{
		"no group":                        {deadline: 600, wait: 5 * time.Minute},
		"two groups":                      {groups: groups(settings{timeout: "2m", interval: "1m"}, nil), deadline: 600, wait: 5 * time.Minute},
		"a group without annotations":     {groups: groups(nil), deadline: 600, wait: 5 * time.Minute},
		"a group with both":               {groups: groups(settings{timeout: "2m", interval: "1m"}), deadline: 120, wait: time.Minute},
		"a timeout that is none":          {groups: groups(settings{timeout: "soon"}), deadline: 600, wait: 5 * time.Minute, said: `failed to parse unpack timeout annotation(operatorframework.io/bundle-unpack-timeout: soon): time: invalid duration "soon"`},
		"an interval that is none":        {groups: groups(settings{interval: "often"}), deadline: 600, wait: 5 * time.Minute, said: `failed to parse unpack retry annotation(operatorframework.io/bundle-unpack-min-retry-interval: often): time: invalid duration "often"`},
		"a timeout that is negative":      {groups: groups(settings{timeout: "-1m"}), deadline: 600, wait: 5 * time.Minute},
		"a timeout of a second":           {groups: groups(settings{timeout: "1s"}), deadline: 1, wait: 5 * time.Minute},
		"an interval of nothing: as ever": {groups: groups(settings{interval: "0"}), deadline: 600, wait: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.OperatorGroups = olmcore.Found(c.groups...) }))
			j := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*batchv1.Job)
			require.Equal(t, c.deadline, *j.Spec.ActiveDeadlineSeconds)
			j.UID, j.CreationTimestamp = "uid-job", *ago(time.Minute)
			ended(batchv1.JobFailed, 0)(j)
			after := unpackRound(t, unpacking(t, withJobs(j), func(in *unpack.Input) { in.OperatorGroups = olmcore.Found(c.groups...) }))
			require.Equal(t, c.wait, after.RequeueAfter)
			var said []string
			for _, d := range append(out.Diagnostics, after.Diagnostics...) {
				require.Equal(t, unpack.ReasonSettingInvalid, d.Reason)
				said = append(said, d.Message)
			}
			if c.said == "" {
				require.Empty(t, said)
				return
			}
			require.Equal(t, []string{c.said}, slices.Compact(said))
		})
	}
}

// TestWhichJobsAreKept: the newest counts, and of those that failed the last ones
// and the first stay.
func TestWhichJobsAreKept(t *testing.T) {
	job := func(name string, age time.Duration, change ...func(*batchv1.Job)) *batchv1.Job {
		return madeJob(t, append([]func(*batchv1.Job){func(j *batchv1.Job) { j.Name, j.CreationTimestamp = name, *ago(age) }}, change...)...)
	}
	failedAgo := func(d time.Duration) func(*batchv1.Job) { return ended(batchv1.JobFailed, d) }
	failures := func(n int) []*batchv1.Job {
		var out []*batchv1.Job
		for i := range n { // the first one failed last
			out = append(out, job(fmt.Sprintf("j%d", i), time.Hour, failedAgo(time.Duration(i+1)*time.Second)))
		}
		return out
	}
	unclear := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionUnknown}}
	}
	const failure = "Failed DeadlineExceeded: Job was active longer than specified deadline"
	hasNoPods := func(name string) []string { return []string{incomplete + ": Unpack job olm/" + name + " has no pods"} }
	for name, c := range map[string]struct {
		jobs       []*batchv1.Job
		deleted    []string
		conditions []string
	}{
		"the oldest is kept":                {jobs: failures(7), deleted: []string{"j5"}, conditions: []string{notStarted, failure}},
		"several old ones":                  {jobs: failures(10), deleted: []string{"j5", "j6", "j7", "j8"}, conditions: []string{notStarted, failure}},
		"not more than as many as are kept": {jobs: failures(20), deleted: []string{"j5", "j6", "j7", "j8", "j9"}, conditions: []string{notStarted, failure}},
		"as many as are kept":               {jobs: failures(6), conditions: []string{notStarted, failure}},
		"one that did not fail counts":      {jobs: append(failures(1), job("runs", 2*time.Hour)), conditions: hasNoPods("runs")},
		"the newest that did not fail":      {jobs: []*batchv1.Job{job("old", 3*time.Hour), job("new", time.Minute), job("older", 4*time.Hour)}, conditions: hasNoPods("new")},
		"a condition that is not True":      {jobs: []*batchv1.Job{job("runs", time.Hour, unclear)}, conditions: hasNoPods("runs")},
		"the one that failed last counts": {jobs: []*batchv1.Job{job("a", time.Minute, failedAgo(10*time.Minute)), job("b", time.Hour, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "no", LastTransitionTime: *ago(time.Second)}}
		})}, conditions: []string{notStarted, "Failed BackoffLimitExceeded: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, withJobs(c.jobs...)))
			var deleted []string
			for _, a := range out.Actions {
				deleted = append(deleted, a.(olmcore.Delete).Target.Name)
			}
			require.Equal(t, c.deleted, deleted)
			same(t, c.conditions, conditionsOf(out.Lookup))
		})
	}
}
