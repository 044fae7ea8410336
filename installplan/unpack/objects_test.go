// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// unpackWorld has a CatalogSource, and a group with annotations.
func unpackWorld(t testing.TB, annotations map[string]string) *fake.Cluster {
	t.Helper()
	c := World(t, &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}, Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}})
	require.NoError(t, fake.Edit(c, NS, "group", func(g *operatorsv1.OperatorGroup) { g.Annotations = annotations }))
	return c
}

// unpackedSoFar asks for a bundle as often as it takes until nothing is written any more.
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

// TestPermissionsAreRepaired: a binding of something else is made anew, a Role keeps what it had.
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

// TestUnmanagedConfigMapIsLeftAlone: one that says which image it holds is the bundle's, and gets its owner although
// nothing else is to be done.
func TestUnmanagedConfigMapIsLeftAlone(t *testing.T) {
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) {
		in.ConfigMap = Filled(map[string]string{"csv.yaml": EtcdCSV})
		in.ConfigMap.Labels, in.ConfigMap.OwnerReferences = nil, nil
	}))
	require.Empty(t, out.Diagnostics)
	require.NotNil(t, out.Bundle)
	require.Equal(t, BundleImage, out.Bundle.Image)
	require.True(t, olmcore.OwnedBy(out.Actions[0].(olmcore.Update).After, "uid-cool"))
}

// TestObjectsThatUnpackABundle from nothing but its catalog: every object, whole.
//
// OLM's cases: from nothing but the catalog: all objects, whole, then JobIncomplete; a finished Job: the bundle's
// objects, no longer pending; time to live, backoff, deadline and labels of the Job; the pull policy follows the
// digest.
func TestObjectsThatUnpackABundle(t *testing.T) {
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
