// SPDX-License-Identifier: Apache-2.0

package unpack_test

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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

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

// unpackWorld returns a cluster with a CatalogSource, and an OperatorGroup with annotations.
func unpackWorld(t testing.TB, annotations map[string]string) *fake.Cluster {
	t.Helper()
	c := World(t, &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}, Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}})
	require.NoError(t, fake.Edit(c, NS, "group", func(g *operatorsv1.OperatorGroup) { g.Annotations = annotations }))
	return c
}

// unpackedSoFar calls Bundle until it returns no more actions.
func unpackedSoFar(t testing.TB, c *fake.Cluster, l v1alpha1.BundleLookup) (unpack.Outcome, []olmcore.Object) {
	t.Helper()
	var made []olmcore.Object
	for range 5 {
		in, err := unpack.Gather(t.Context(), c, NS, l, Images)
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

// TestPermissionsAreRepaired checks that a RoleBinding with another role or subject is replaced, and that a Role keeps
// its other rules.
func TestPermissionsAreRepaired(t *testing.T) {
	for name, change := range map[string]func(*rbacv1.RoleBinding){
		"another role":    func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "other" },
		"another subject": func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "other" },
	} {
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { change(in.RoleBinding) }))
		require.Equal(t, []string{"delete RoleBinding olm/" + BundleName + " (UnpackObjectDiffers)"}, Describe(out.Result), name)
		require.NotEmpty(t, out.Actions[0].(olmcore.Delete).Target.UID, name)
	}
	theirs := rbacv1.PolicyRule{Verbs: []string{"list"}}
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.Role.Rules = []rbacv1.PolicyRule{theirs} }))
	rules := out.Actions[0].(olmcore.Update).After.(*rbacv1.Role).Rules
	require.Equal(t, theirs, rules[0])
	require.Equal(t, []string{BundleName}, rules[1].ResourceNames)
}

// TestUnmanagedConfigMapIsNotChanged checks that an unmanaged ConfigMap is not changed. A ConfigMap whose annotation
// names the image belongs to the bundle, and gets its owner even if there is nothing else to do.
func TestUnmanagedConfigMapIsNotChanged(t *testing.T) {
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) {
		in.ConfigMap = Filled(map[string]string{"csv.yaml": EtcdCSV})
		in.ConfigMap.Labels, in.ConfigMap.OwnerReferences = nil, nil
	}))
	require.Empty(t, out.Diagnostics)
	require.NotNil(t, out.Bundle)
	require.Equal(t, BundleImage, out.Bundle.Image)
	require.True(t, olmcore.OwnedBy(out.Actions[0].(olmcore.Update).After, "uid-cool"))
}

// TestObjectsThatUnpackABundleAreCreated checks every object in full.
//
// OLM's cases: from nothing but the catalog: all objects, whole, then JobIncomplete; a finished Job: the bundle's
// objects, no longer pending; time to live, backoff, deadline and labels of the Job; the pull policy follows the
// digest.
func TestObjectsThatUnpackABundleAreCreated(t *testing.T) {
	const digest = "quay.io/operatorhubio/etcd@sha256:0123"
	for name, c := range map[string]struct{ image, pull string }{
		"an image with a tag":    {BundleImage, "Always"},
		"an image with a digest": {digest, "IfNotPresent"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := unpackWorld(t, map[string]string{unpack.AnnotationTimeout: "2m"})
			l := Lookup(t)
			l.Path = c.image
			out, objects := unpackedSoFar(t, cluster, l)
			Same(t, []string{incomplete}, ConditionsOf(out.Lookup))
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
				got[kind] = Normal(t, Shown(t, cluster, o))
			}
			require.NotEmpty(t, hash)
			require.Len(t, unpacks, 63)
			if c.image == BundleImage {
				require.Equal(t, BundleName, unpacks)
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
				want[kind] = Normal(t, fill.Replace(text))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// admitted returns a Job with changes that a webhook may make.
func admitted(t *rapid.T, a olmcore.Create) olmcore.Create {
	if !Maybe(t, "altered") {
		return a
	}
	j := a.Object.DeepCopyObject().(*batchv1.Job)
	j.Spec.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 9999).Draw(t, "deadline"))
	j.Spec.Template.Spec.Tolerations = nil
	j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
	a.Object = j
	return a
}

// TestBundleIsUnpackedDespiteLostWrites checks that only one Job runs at a time, that no Job runs before its
// permissions exist, and that the bundle is unpacked once a Job succeeds.
//
// OLM's case: a failed try is repeated, a successful one not.
func TestBundleIsUnpackedDespiteLostWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		Faults(t, c)
		failures := rapid.IntRange(0, 3).Draw(t, "failures")
		var failedAt time.Time
		for range 400 {
			c.Faults().RestartController()
			in, err := unpack.Gather(t.Context(), c, NS, Lookup(t), Images)
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
				require.False(t, c.Now().Before(failedAt.Add(5*time.Minute)), "too soon")
				binding, err := olmcore.Get[*rbacv1.RoleBinding](t.Context(), c, "olm", BundleName)
				require.NoError(t, err)
				require.NotNil(t, binding)
				end := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}
				if failures > 0 {
					failures--
					end.Type, end.Reason, failedAt = batchv1.JobFailed, "BackoffLimitExceeded", c.Now()
				} else {
					require.NoError(t, fake.Edit(c, "olm", BundleName, func(cm *corev1.ConfigMap) {
						cm.Annotations = map[string]string{"olm.sourceImage": BundleImage}
						cm.Data = map[string]string{"csv.yaml": EtcdCSV}
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

// TestTwoNamespacesShareAJob checks two namespaces that unpack the same bundle with different timeouts. In any order of
// calls, and with any changes by a webhook, no namespace deletes the Job, only one Job exists at a time, and no name is
// used twice.
func TestTwoNamespacesShareAJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		for _, name := range []string{"one", "two"} {
			require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group", Annotations: map[string]string{
				unpack.AnnotationTimeout:       rapid.SampledFrom([]string{"30s", "1m", "500ms", "0", "2h"}).Draw(t, "timeout"),
				unpack.AnnotationRetryInterval: rapid.SampledFrom([]string{"0", "1m", "10m"}).Draw(t, "interval"),
			}}}))
		}
		names := map[string]bool{}
		ask := func(namespace string) []olmcore.Action {
			in, err := unpack.Gather(t.Context(), c, namespace, Lookup(t), Images)
			require.NoError(t, err)
			in.Now = c.Now()
			actions := unpackRound(t, in).Actions
			for i, a := range actions {
				verb, target, _ := a.Describe()
				require.NotEqual(t, olmcore.VerbDelete, verb, "%s is deleted", target)
				if verb == olmcore.VerbCreate && target.Kind == "Job" {
					require.False(t, names[target.Name], "%s is used again", target.Name)
					require.LessOrEqual(t, len(target.Name), 63)
					names[target.Name] = true
					actions[i] = admitted(t, a.(olmcore.Create))
				}
			}
			require.NoError(t, olmcore.Run(t.Context(), c, actions))
			return actions
		}
		for range rapid.IntRange(6, 20).Draw(t, "rounds") {
			ask(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "who"))
			jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
			require.NoError(t, err)
			running := 0
			for _, j := range jobs {
				if len(j.Status.Conditions) > 0 {
					continue
				}
				running++
				if len(jobs) < 5 && Maybe(t, "fails") {
					after := j.DeepCopy()
					after.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}}
					require.NoError(t, c.UpdateStatus(after))
				}
			}
			require.LessOrEqual(t, running, 1)
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "time"))
		}
		c.Advance(time.Hour)
		for range 4 {
			ask("one")
			ask("two")
		}
		require.Empty(t, ask("one"), "it comes to rest")
		require.Empty(t, ask("two"), "it comes to rest")
	})
}
