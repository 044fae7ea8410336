// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// made returns a certificate of a new authority that is valid from a time on.
func made(t testing.TB, seed string, from time.Time) serving.Certificate {
	t.Helper()
	issued, _, err := olm.Issuer{Seed: seed}.Issue(t.Context(), nil, []serving.Request{{
		Deployment: deployment, Namespace: namespace, Service: service, Hosts: serving.Hosts(service, namespace),
		NotBefore: from, NotAfter: from.Add(serving.Validity),
	}}, from)
	require.NoError(t, err)
	return issued[0].Certificate
}

// parse returns the certificates in PEM data.
func parse(data []byte) serving.Bundle { return (*serving.Memory)(nil).Bundle(data) }

// secretOf returns the Secret of the CSV with a current and a next certificate. Each may be empty.
func secretOf(owner string, current, next serving.Certificate, changes ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-cert", Namespace: namespace, UID: "uid-secret", ResourceVersion: "7",
			Labels: map[string]string{"olm.managed": "true"}, OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(csvOf(owner))},
		},
		Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": current.CertPEM, "tls.key": current.KeyPEM},
	}
	if len(current.CAPEM) > 0 {
		s.Data["olmCAKey"] = current.CAPEM
		s.Annotations = map[string]string{"olmcahash": internalserving.Hash(current.CAPEM)}
	}
	if len(next.CAPEM) > 0 {
		maps.Copy(s.Data, map[string][]byte{"next.olmCAKey": next.CAPEM, "next.tls.crt": next.CertPEM, "next.tls.key": next.KeyPEM})
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// running returns the Deployment with the hash of an authority. updated is the number of its two Pods that were
// replaced.
func running(ca []byte, updated int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace, UID: "uid-d", ResourceVersion: "8"}}
	d.Spec.Template.Annotations = map[string]string{"olmcahash": internalserving.Hash(ca)}
	d.Status.Replicas, d.Status.UpdatedReplicas = 2, updated
	return d
}

// sourceOf returns a Source whose objects except the Secret are up to date.
func sourceOf(secret *corev1.Secret, live *appsv1.Deployment, clients ...internalserving.Client) internalserving.Backends {
	s := internalserving.Backends{Operator: model.Operator{CSV: csvOf("cool.v1"), Now: now, Objects: &serving.Objects{}}, Clients: clients}
	secrets := olmcore.Found(secretOf("cool.v1", madeOnce("old"), none))
	first := internalserving.Backends{Operator: model.Operator{CSV: s.CSV, Now: now, Objects: &serving.Objects{Secrets: secrets}}}
	for _, a := range internalserving.CertificatesOf(first).Install {
		switch o := objectOf(a).(type) {
		case *corev1.Service:
			s.Objects.Services = olmcore.Found(o)
		case *rbacv1.Role:
			s.Objects.Roles = olmcore.Found(o)
		case *rbacv1.RoleBinding:
			s.Objects.RoleBindings.Items = append(s.Objects.RoleBindings.Items, o)
		case *rbacv1.ClusterRoleBinding:
			s.Objects.ClusterRoleBindings = olmcore.Found(o)
		}
	}
	if secret != nil {
		s.Objects.Secrets = olmcore.Found(secret)
	}
	if live != nil {
		s.Deployments = []*appsv1.Deployment{live}
	}
	return s
}

var (
	none     serving.Certificate
	madeOnce = func() func(string) serving.Certificate {
		known := map[string]serving.Certificate{}
		return func(seed string) serving.Certificate {
			if _, ok := known[seed]; !ok {
				issued, _, err := olm.Issuer{Seed: seed}.Issue(context.Background(), nil, []serving.Request{{
					Deployment: deployment, Hosts: serving.Hosts(service, namespace), NotBefore: now, NotAfter: now.Add(serving.Validity),
				}}, now)
				if err != nil {
					panic(err)
				}
				known[seed] = issued[0].Certificate
			}
			return known[seed]
		}
	}()
)

func trusts(bundles ...[]byte) internalserving.Client {
	return internalserving.Client{Service: service, Bundle: bytes.Join(bundles, nil)}
}

// said returns the messages of actions.
func said(actions []olmcore.Action) (messages []string) {
	for _, a := range actions {
		verb, target, why := a.Describe()
		messages = append(messages, string(verb)+" "+target.Kind+": "+why.Message)
	}
	return messages
}

func TestStepsOfRotation(t *testing.T) {
	old, next := madeOnce("old"), madeOnce("next")
	expired := made(t, "expired", now.Add(-serving.Validity-time.Hour))
	const follows = "update Secret: all clients trust the next certificate of deployment cool"
	const noted = follows + " from now on"
	const settles = "update Secret: all Pods of deployment cool serve with the same certificate"
	missing := internalserving.Client{Service: service, Missing: true}
	previous := func(ca []byte) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data["previous.olmCAKey"] = ca }
	}
	trustedFor := func(d time.Duration) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/next-trusted-since", now.Add(-d).Format(time.RFC3339))
		}
	}
	cases := map[string]struct {
		source          internalserving.Backends
		requests        int
		install, settle []string
		wait            time.Duration
	}{
		"no object exists":         {source: sourceOf(nil, nil), requests: 1},
		"everything is up to date": {source: sourceOf(secretOf("cool.v1", old, none), running(old.CAPEM, 2), trusts(old.CAPEM))},
		"the next waits for a client to trust it": {
			source: sourceOf(secretOf("cool.v1", old, next), running(old.CAPEM, 2), trusts(old.CAPEM, next.CAPEM), trusts(old.CAPEM)),
		},
		"all clients trust the next": {
			source:  sourceOf(secretOf("cool.v1", old, next), running(old.CAPEM, 2), trusts(old.CAPEM, next.CAPEM), trusts(next.CAPEM)),
			install: []string{noted},
		},
		"the next waits until API servers know that they do": {
			source: sourceOf(secretOf("cool.v1", old, next, trustedFor(3*time.Second)), running(old.CAPEM, 2), trusts(next.CAPEM)),
			wait:   internalserving.TrustGrace - 3*time.Second,
		},
		"then the next certificate is used": {
			source:  sourceOf(secretOf("cool.v1", old, next, trustedFor(internalserving.TrustGrace)), running(old.CAPEM, 2), trusts(next.CAPEM)),
			install: []string{follows},
		},
		"a recorded time in the future does not count": {
			source:  sourceOf(secretOf("cool.v1", old, next, trustedFor(-time.Hour)), running(old.CAPEM, 2), trusts(next.CAPEM)),
			install: []string{noted},
		},
		"a recorded time that is no longer true does not count": {
			source:  sourceOf(secretOf("cool.v1", old, next, trustedFor(time.Hour)), running(old.CAPEM, 2), trusts(old.CAPEM)),
			install: []string{"update Secret: not all clients trust the next certificate of deployment cool"},
		},
		"clients of other Services do not count": {
			source:  sourceOf(secretOf("cool.v1", old, next), running(old.CAPEM, 2), internalserving.Client{Service: "other", Bundle: old.CAPEM}),
			install: []string{noted},
		},
		"a client that trusts nothing does not count": {
			source:  sourceOf(secretOf("cool.v1", old, next), running(old.CAPEM, 2), trusts(nil)),
			install: []string{noted},
		},
		"a missing client is waited for": {
			source: sourceOf(secretOf("cool.v1", old, next), running(old.CAPEM, 2), trusts(old.CAPEM, next.CAPEM), missing),
		},
		"a missing client is not waited for if the certificate is invalid": {
			source:   sourceOf(secretOf("cool.v1", expired, next), running(expired.CAPEM, 2), trusts(next.CAPEM), missing),
			requests: 0, install: []string{noted},
		},
		"a missing client is not waited for before the installation": {
			source:  sourceOf(secretOf("cool.v1", none, next), nil, missing),
			install: []string{follows},
		},
		"the previous authority stays while old Pods run": {
			source: sourceOf(secretOf("cool.v1", next, none, previous(old.CAPEM)), running(next.CAPEM, 1), trusts(old.CAPEM, next.CAPEM)),
		},
		"the previous authority stays while the Deployment has the old hash": {
			source: sourceOf(secretOf("cool.v1", next, none, previous(old.CAPEM)), running(old.CAPEM, 2), trusts(old.CAPEM, next.CAPEM)),
		},
		"the previous authority retires once all Pods are new": {
			source: sourceOf(secretOf("cool.v1", next, none, previous(old.CAPEM)), running(next.CAPEM, 2), trusts(old.CAPEM, next.CAPEM)),
			settle: []string{settles},
		},
		"an authority that only clients contain retires too": {
			source: sourceOf(secretOf("cool.v1", next, none), running(next.CAPEM, 2), trusts(old.CAPEM, next.CAPEM)),
			settle: []string{settles},
		},
		"the Secret of the previous version is taken over": {
			source:  sourceOf(secretOf("cool.v0", old, none), running(old.CAPEM, 2), trusts(old.CAPEM)),
			install: []string{"update Secret: secret cool-service-cert is taken over by this version"},
		},
		"a certificate for other hosts": {
			source: sourceOf(
				secretOf("cool.v1", serving.Certificate{CAPEM: old.CAPEM, CertPEM: old.CertPEM}, none),
				running(old.CAPEM, 2),
				trusts(old.CAPEM),
			),
			requests: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := internalserving.CertificatesOf(c.source)
			require.Empty(t, plan.Problem)
			require.Len(t, plan.Requests, c.requests)
			require.Empty(t, cmp.Diff(c.install, said(plan.Install)))
			require.Empty(t, cmp.Diff(c.settle, said(plan.Settle)))
			require.Equal(t, c.wait, plan.Wait)
		})
	}
}

func TestBundlesOfClients(t *testing.T) {
	old, next, third := madeOnce("old"), madeOnce("next"), madeOnce("third")
	expired := made(t, "expired", now.Add(-serving.Validity-time.Hour))
	retired := func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/retired-authorities", parse(old.CAPEM)[0].ID)
	}
	unknown := func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/unknown-authority", "true")
	}
	previous := func(s *corev1.Secret) { s.Data["previous.olmCAKey"] = third.CAPEM }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	cases := map[string]struct {
		secret     *corev1.Secret
		live       *appsv1.Deployment
		have, want []byte
	}{
		"a new client": {secret: secretOf("cool.v1", old, none), want: old.CAPEM},
		"a new client during a certificate rotation": {
			secret: secretOf("cool.v1", old, next, previous),
			want:   join(old.CAPEM, next.CAPEM, third.CAPEM),
		},
		"no client is created before the CSV owns the Secret": {secret: secretOf("cool.v0", old, none)},
		"no client is created from an expired certificate":    {secret: secretOf("cool.v1", expired, none)},
		"no client is created while the authority of Pods is unknown": {
			secret: secretOf("cool.v1", next, none, unknown), live: running(next.CAPEM, 1)},
		"a client is created once all Pods are new": {
			secret: secretOf("cool.v1", next, none, unknown),
			live:   running(next.CAPEM, 2),
			want:   next.CAPEM,
		},
		"no client is created without a Secret":    {},
		"a client is not changed without a Secret": {have: old.CAPEM, want: old.CAPEM},
		"an authority that the Secret does not know stays": {
			secret: secretOf("cool.v1", old, none),
			have:   join(next.CAPEM, old.CAPEM),
			want:   join(next.CAPEM, old.CAPEM),
		},
		"the next authority is added": {
			secret: secretOf("cool.v1", old, next),
			have:   old.CAPEM,
			want:   join(old.CAPEM, next.CAPEM),
		},
		"a retired authority is removed": {
			secret: secretOf("cool.v1", next, none, retired),
			have:   join(next.CAPEM, old.CAPEM),
			want:   next.CAPEM,
		},
		"an expired authority is removed": {
			secret: secretOf("cool.v1", next, none),
			have:   join(expired.CAPEM, next.CAPEM),
			want:   next.CAPEM,
		},
		"invalid data is removed": {
			secret: secretOf("cool.v1", next, none),
			have:   join([]byte("garbage\n"), next.CAPEM),
			want:   next.CAPEM,
		},
		"invalid data alone is removed too": {
			secret: secretOf("cool.v0", next, none), have: []byte("garbage"), want: next.CAPEM},
		"a Secret of another owner is ignored": {
			secret: secretOf("cool.v1", next, none, func(s *corev1.Secret) { s.OwnerReferences = nil }),
			have:   old.CAPEM,
			want:   old.CAPEM,
		},
		"a Secret that is too large is ignored": {
			secret: secretOf("cool.v1", serving.Certificate{CAPEM: bytes.Repeat(next.CAPEM, 200)}, none),
			have:   old.CAPEM,
			want:   old.CAPEM,
		},
		"the current authority is copied byte for byte": {
			secret: secretOf("cool.v1", serving.Certificate{CAPEM: join([]byte("# hello\n"), next.CAPEM)}, none),
			have:   next.CAPEM,
			want:   join([]byte("# hello\n"), next.CAPEM),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := internalserving.CertificatesOf(sourceOf(c.secret, c.live)).Trust(deployment, c.have)
			require.Equal(t, string(c.want), string(got))
		})
	}
}

// TestDeletedSecretIsCreatedAgain checks that Pods may serve with the certificates that clients trust. If those are
// unknown, new clients wait.
func TestDeletedSecretIsCreatedAgain(t *testing.T) {
	old, next := madeOnce("old"), madeOnce("next")
	live := running(old.CAPEM, 2)
	create := func(clients ...internalserving.Client) *corev1.Secret {
		s := sourceOf(nil, live, clients...)
		s.Issued = []serving.Issued{{Deployment: deployment, Certificate: next}}
		plan := internalserving.CertificatesOf(s)
		require.Empty(t, plan.Requests)
		require.Len(t, plan.Install, 1)
		return objectOf(plan.Install[0]).(*corev1.Secret)
	}
	known := create(trusts(old.CAPEM))
	require.Equal(t, old.CAPEM, known.Data["previous.olmCAKey"])
	require.Equal(t, next.CertPEM, known.Data["next.tls.crt"])
	require.Empty(t, known.Data["tls.crt"], "Pods mount it once all clients trust it")
	require.NotContains(t, known.Annotations, "olmcore/unknown-authority")
	lost := create()
	require.Contains(t, lost.Annotations, "olmcore/unknown-authority")
	require.NotContains(t, lost.Annotations, "olmcahash")
	live.Spec.Template.Annotations = nil
	require.NotContains(t, create().Annotations, "olmcore/unknown-authority", "no Pod serves")
	live.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "webhook-cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: service + "-cert"}}},
	}
	require.Contains(t, create().Annotations, "olmcore/unknown-authority", "Pods serve also where their annotation was lost")
}

func TestIssuedCertificatesAreInspected(t *testing.T) {
	s := sourceOf(nil, nil)
	s.Issued = []serving.Issued{{Deployment: deployment, Certificate: made(t, "expired", now.Add(-serving.Validity-time.Hour))}}
	plan := internalserving.CertificatesOf(s)
	require.Equal(
		t,
		"the certificate that was issued for deployment cool is invalid: the certificate or its authority has expired, or is not valid yet",
		plan.Problem,
	)
	require.Empty(t, plan.Install)
}

func TestRequestedCertificate(t *testing.T) {
	want := []serving.Request{{
		Deployment: deployment, Namespace: namespace, Service: service,
		Hosts:     []string{"cool-service.ns", "cool-service.ns.svc", "cool-service.ns.svc.cluster.local"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(730 * 24 * time.Hour), Owner: olmcore.OwnerReferenceTo(csvOf("cool.v1")),
	}}
	plan := internalserving.CertificatesOf(sourceOf(nil, nil))
	require.Empty(t, cmp.Diff(want, plan.Requests))
	require.Equal(t, "deployment cool: the authority's certificate is missing", plan.Renew)
	require.False(t, plan.Ready(deployment))
	plan = internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", madeOnce("old"), none), nil))
	require.True(t, plan.Ready(deployment))
	require.Equal(t, now.Add(729*24*time.Hour), plan.RenewAt.UTC())
}

// TestCertificateIsRequestedOnlyIfItMustBeReplaced checks this for any content of the Secret and of the status. The
// request is not repeated after the certificate was issued.
func TestCertificateIsRequestedOnlyIfItMustBeReplaced(t *testing.T) {
	hosts := serving.Hosts(service, namespace)
	spoils := map[string]func(c *serving.Certificate){
		"nothing":           func(*serving.Certificate) {},
		"its key":           func(c *serving.Certificate) { c.KeyPEM = nil },
		"its certificate":   func(c *serving.Certificate) { c.CertPEM = []byte("garbage") },
		"its authority":     func(c *serving.Certificate) { c.CAPEM = nil },
		"another authority": func(c *serving.Certificate) { c.CAPEM = madeOnce("other").CAPEM },
		"all of it":         func(c *serving.Certificate) { *c = none },
	}
	spoilt := func(t *rapid.T, seed string) serving.Certificate {
		c := madeOnce(seed)
		spoils[rapid.SampledFrom(slices.Sorted(maps.Keys(spoils))).Draw(t, "of "+seed)](&c)
		return c
	}
	rapid.Check(t, func(t *rapid.T) {
		current, next := spoilt(t, "old"), spoilt(t, "new")
		s := sourceOf(secretOf("cool.v1", current, next), running(current.CAPEM, 2))
		if rapid.Bool().Draw(t, "no Secret") {
			s.Objects.Secrets, current, next = olmcore.Found[*corev1.Secret](), none, none
		}
		s.Now = now.Add(
			rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Hour, serving.Validity - serving.RenewBefore,
				serving.Validity - time.Hour, serving.Validity + time.Hour}).
				Draw(t, "at"),
		)
		rotates := metav1.NewTime(s.Now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour}).Draw(t, "status.certsRotateAt")))
		s.CSV = s.CSV.DeepCopy()
		s.CSV.Status.CertsRotateAt = &rotates
		due := serving.Inspect(current, hosts, s.Now).Problem != "" && serving.Inspect(next, hosts, s.Now).Problem != ""
		plan := internalserving.CertificatesOf(s)
		require.Equal(t, due, len(plan.Requests) == 1, plan.Renew)
		if due {
			issued, _, err := olm.Issuer{Seed: "issued"}.Issue(context.Background(), nil, plan.Requests, s.Now)
			require.NoError(t, err)
			s.Issued = issued
			plan = internalserving.CertificatesOf(s)
			require.Empty(t, plan.Requests)
			s.Objects.Secrets, s.Issued = olmcore.Found(written(plan)), nil
			require.Empty(t, internalserving.CertificatesOf(s).Requests, "it is stored")
		}
	})
}

// TestMountedCertificateKeepsHashOfOLM checks that the hash of the spec equals that of OLM, so that adopting a running
// cluster rolls out nothing.
func TestMountedCertificateKeepsHashOfOLM(t *testing.T) {
	ca := madeOnce("old").CAPEM
	plan := internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", madeOnce("old"), none), nil))
	container := func(mounts ...corev1.VolumeMount) corev1.Container {
		return corev1.Container{Name: "c", VolumeMounts: mounts}
	}
	api := corev1.VolumeMount{Name: "apiservice-cert", MountPath: "/apiserver.local.config/certificates"}
	hook := corev1.VolumeMount{Name: "webhook-cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}
	volume := func(name, cert, key string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "cool-service-cert", Items: []corev1.KeyToPath{{Key: "tls.crt", Path: cert}, {Key: "tls.key", Path: key}},
		}}}
	}
	apis, hooks := volume("apiservice-cert", "apiserver.crt", "apiserver.key"), volume("webhook-cert", "tls.crt", "tls.key")
	other := corev1.Volume{Name: "webhook-cert", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	same := corev1.VolumeMount{Name: "webhook-cert", MountPath: "/elsewhere"}
	path := corev1.VolumeMount{Name: "mine", MountPath: hook.MountPath}
	for name, c := range map[string]struct{ have, want corev1.PodSpec }{
		"appended": {
			corev1.PodSpec{Containers: []corev1.Container{container()}, InitContainers: []corev1.Container{container()}},
			corev1.PodSpec{
				ServiceAccountName: "default", Volumes: []corev1.Volume{apis, hooks}, Containers: []corev1.Container{container(api, hook)},
				InitContainers: []corev1.Container{container()},
			},
		},
		"a volume of that name is replaced, a mount of it stays": {
			corev1.PodSpec{ServiceAccountName: "mine", Volumes: []corev1.Volume{other}, Containers: []corev1.Container{container(same)}},
			corev1.PodSpec{ServiceAccountName: "mine", Volumes: []corev1.Volume{hooks, apis}, Containers: []corev1.Container{container(same, api)}},
		},
		"a mount at the path is replaced": {
			corev1.PodSpec{Containers: []corev1.Container{container(path)}},
			corev1.PodSpec{
				ServiceAccountName: "default", Volumes: []corev1.Volume{apis, hooks}, Containers: []corev1.Container{container(hook, api)},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: c.have}}
			before := d.DeepCopy()
			plan.Mount(deployment, &d)
			want := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"olmcahash": internalserving.Hash(ca)}}, Spec: c.want,
			}}
			require.Empty(t, cmp.Diff(want, d))
			untouched := *before
			plan.Mount("other", &untouched)
			require.Empty(t, cmp.Diff(before, &untouched))
		})
	}
	fixed := secretOf("cool.v1", serving.Certificate{CAPEM: []byte("ca")}, none)
	d := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container()}}}}
	internalserving.CertificatesOf(sourceOf(fixed, nil)).Mount(deployment, &d)
	hash, err := olmcore.Hash(&d)
	require.NoError(t, err)
	require.Equal(t, "441iHG4r5TsDiYfSVLpo4wBhduJqbOBYUlKjbm", hash)
}

// TestPodsServeOnlyWithTrustedCertificates checks that API servers whose caches are 10 s old trust a certificate when
// Pods serve with it. This holds even if the clock of the manager that recorded since when it is trusted is behind by
// the tolerance.
func TestPodsServeOnlyWithTrustedCertificates(t *testing.T) {
	old, next := madeOnce("old"), madeOnce("next")
	at := func(secret *corev1.Secret, clock time.Time) *corev1.Secret {
		source := sourceOf(secret, running(old.CAPEM, 2), trusts(old.CAPEM, next.CAPEM))
		source.Now = clock
		return written(internalserving.CertificatesOf(source))
	}
	for _, fraction := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, time.Second - 1} {
		began := now.Add(fraction)
		noted := at(secretOf("cool.v1", old, next), began)
		require.Equal(t, now.Format(time.RFC3339), noted.Annotations["olmcore/next-trusted-since"])
		early := began.Add(10*time.Second - 1).Add(olmcore.ClockTolerance)
		require.True(t, at(noted, early) == nil, "%s after the second began", fraction)
		require.Equal(t, next.CertPEM, at(noted, early.Add(2*time.Second)).Data[corev1.TLSCertKey])
	}
}

// TestNewCertificateOfSameAuthorityRollsOutDeployment checks a rollout for which the hash of the authority does not
// change.
func TestNewCertificateOfSameAuthorityRollsOutDeployment(t *testing.T) {
	old := madeOnce("old")
	trusted := secretOf("cool.v1", old, old)
	trusted.Annotations["olmcore/next-trusted-since"] = now.Add(-internalserving.TrustGrace).Format(time.RFC3339)
	plan := internalserving.CertificatesOf(sourceOf(trusted, running(old.CAPEM, 2), trusts(old.CAPEM)))
	require.Len(t, plan.Install, 1)
	after := objectOf(plan.Install[0]).(*corev1.Secret)
	require.Equal(t, internalserving.Hash(old.CertPEM), after.Annotations["olmcore/certificate-hash"])
	var d appsv1.DeploymentSpec
	plan = internalserving.CertificatesOf(sourceOf(after, running(old.CAPEM, 2), trusts(old.CAPEM)))
	plan.Mount(deployment, &d)
	require.Equal(t, internalserving.Hash(old.CertPEM), d.Template.Annotations["olmcore/certificate-hash"])
}

func TestObjectNamesMatchOLM(t *testing.T) {
	require.Equal(t, "a-b-service", internalserving.ServiceName("a.b"))
	require.Equal(t, "a-b-service-cert", internalserving.CertificateName("a.b"))
	require.Equal(
		t,
		[]string{"a-service-auth-reader", "a-service-auth-reader-" + olmcore.NameSuffix(8, "ns")},
		internalserving.ReaderNames("a", "ns"),
	)
	require.Equal(
		t,
		[]string{
			"a-b-service-system:auth-delegator",
			"a-b-service-system:auth-delegator-" + olmcore.NameSuffix(8, "ns"),
			"a.b-service-system:auth-delegator",
		},
		internalserving.DelegatorNames("a.b", "ns"),
	)
	c := csvOf("cool.v1")
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{DeploymentName: "cool"}, {DeploymentName: "undeclared"}}
	require.Equal(t, []string{"cool"}, internalserving.DeploymentNames(c))
}

func TestObjectsOfADeployment(t *testing.T) {
	c := csvOf("cool.v1")
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "op"
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{DeploymentName: deployment, ContainerPort: 5443}}
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		{DeploymentName: deployment, TargetPort: new(intstr.FromInt32(9443))}, {DeploymentName: deployment, ContainerPort: 5443},
	}
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: namespace, Name: "installer"}
	objects := &serving.Objects{Secrets: olmcore.Found(secretOf("cool.v1", madeOnce("old"), none))}
	plan := internalserving.CertificatesOf(
		internalserving.Backends{Operator: model.Operator{CSV: c, Account: account, Now: now, Objects: objects}},
	)
	var got []olmcore.Object
	for _, a := range plan.Install {
		require.Equal(t, account, a.Identity())
		got = append(got, objectOf(a))
	}
	inside := metav1.ObjectMeta{
		Namespace:       namespace,
		Labels:          map[string]string{"olm.managed": "true"},
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)},
	}
	outside := metav1.ObjectMeta{Labels: map[string]string{
		"olm.managed": "true", "olm.owner": "cool.v1", "olm.owner.kind": "ClusterServiceVersion",
		"olm.owner.namespace": namespace, "olm.owner.uid": string(c.UID),
	}}
	named := func(m metav1.ObjectMeta, namespace, name string) metav1.ObjectMeta {
		m.Namespace, m.Name = namespace, name
		return m
	}
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "op"}}
	ref := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: kind, Name: name}
	}
	want := []olmcore.Object{
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: named(inside, namespace, "cool-service"),
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "cool"}, Ports: []corev1.ServicePort{
				{Name: "443", Port: 443, TargetPort: intstr.FromInt32(9443), Protocol: "TCP"},
				{Name: "5443", Port: 5443, TargetPort: intstr.FromInt32(5443), Protocol: "TCP"},
			}},
		},
		&rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: named(inside, namespace, "cool-service-cert"), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"cool-service-cert"}},
		}},
		&rbacv1.RoleBinding{
			TypeMeta:   rbac("RoleBinding"),
			ObjectMeta: named(inside, namespace, "cool-service-cert"),
			Subjects:   subjects,
			RoleRef:    ref("Role", "cool-service-cert"),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   rbac("ClusterRoleBinding"),
			ObjectMeta: named(outside, "", "cool-service-system:auth-delegator"),
			Subjects:   subjects,
			RoleRef:    ref("ClusterRole", "system:auth-delegator"),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   rbac("RoleBinding"),
			ObjectMeta: named(outside, "kube-system", "cool-service-auth-reader"),
			Subjects:   subjects,
			RoleRef:    ref("Role", "extension-apiserver-authentication-reader"),
		},
	}
	require.Empty(t, cmp.Diff(want, got))
}

// TestObjectsOfOtherOwnersAreNotWritten checks that a second name is used outside the namespace if another owner has
// the first one.
func TestServingObjectsOfOtherOwnersAreNotWritten(t *testing.T) {
	stranger := metav1.ObjectMeta{Namespace: namespace, UID: "u", ResourceVersion: "1"}
	at := func(name string) metav1.ObjectMeta { m := stranger; m.Name = name; return m }
	binding := func(name, owner, subject string, managed bool) *rbacv1.ClusterRoleBinding {
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Name:            name,
				UID:             "u",
				ResourceVersion: "1",
				Labels:          map[string]string{"olm.managed": strconv.FormatBool(managed)},
			},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: subject, Name: "default"}},
		}
		if owner != "" {
			maps.Copy(b.Labels, olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: owner, Name: "x"}.Labels())
		}
		return b
	}
	plain, suffixed := internalserving.DelegatorNames(deployment, namespace)[0], internalserving.DelegatorNames(deployment, namespace)[1]
	cases := map[string]struct {
		change  func(o *serving.Objects)
		problem string
		install []string
	}{
		"a Secret": {change: func(o *serving.Objects) {
			o.Secrets = olmcore.Found(&corev1.Secret{ObjectMeta: at("cool-service-cert")})
		}, problem: "secret cool-service-cert exists and is not managed by an operator"},
		"a Service": {
			change:  func(o *serving.Objects) { o.Services = olmcore.Found(&corev1.Service{ObjectMeta: at("cool-service")}) },
			problem: "service cool-service exists and is not managed by an operator",
		},
		"a Role": {
			change:  func(o *serving.Objects) { o.Roles = olmcore.Found(&rbacv1.Role{ObjectMeta: at("cool-service-cert")}) },
			problem: "role cool-service-cert exists and is not managed by an operator",
		},
		"a RoleBinding": {
			change: func(o *serving.Objects) {
				o.RoleBindings = olmcore.Found(&rbacv1.RoleBinding{ObjectMeta: at("cool-service-cert")})
			},
			problem: "rolebinding cool-service-cert exists and is not managed by an operator",
		},
		"a ClusterRoleBinding of another namespace, by its labels": {
			change: func(o *serving.Objects) {
				o.ClusterRoleBindings = olmcore.Found(binding(plain, "other", namespace, true))
			},
			install: []string{"create ClusterRoleBinding: clusterrolebinding " + suffixed + " does not exist"},
		},
		"a ClusterRoleBinding of another namespace, by its subjects": {
			change:  func(o *serving.Objects) { o.ClusterRoleBindings = olmcore.Found(binding(plain, "", "other", true)) },
			install: []string{"create ClusterRoleBinding: clusterrolebinding " + suffixed + " does not exist"},
		},
		"a binding of a user": {
			change:  func(o *serving.Objects) { o.ClusterRoleBindings = olmcore.Found(binding(plain, "", namespace, false)) },
			install: []string{"create ClusterRoleBinding: clusterrolebinding " + suffixed + " does not exist"},
		},
		"other owners have both names": {
			change: func(o *serving.Objects) {
				o.ClusterRoleBindings = olmcore.Found(binding(plain, "other", "other", true), binding(suffixed, "", "other", true))
			},
			problem: "clusterrolebinding " + plain + " belongs to another owner",
		},
		"a binding that OLM created without labels": {
			change:  func(o *serving.Objects) { o.ClusterRoleBindings = olmcore.Found(binding(plain, "", namespace, true)) },
			install: []string{"update ClusterRoleBinding: clusterrolebinding " + plain + " does not match this version"},
		},
		"our binding with the second name stays": {
			change: func(o *serving.Objects) {
				o.ClusterRoleBindings = olmcore.Found(binding(suffixed, namespace, namespace, true))
			},
			install: []string{"update ClusterRoleBinding: clusterrolebinding " + suffixed + " does not match this version"},
		},
		"our binding with another role": {
			change: func(o *serving.Objects) {
				b := binding(plain, namespace, namespace, true)
				b.RoleRef.Name = "cluster-admin"
				o.ClusterRoleBindings = olmcore.Found(b)
			},
			install: []string{"delete ClusterRoleBinding: clusterrolebinding " + plain + " binds another role"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := sourceOf(secretOf("cool.v1", madeOnce("old"), none), nil)
			c.change(s.Objects)
			plan := internalserving.CertificatesOf(s)
			require.Equal(t, c.problem, plan.Problem)
			require.Empty(t, cmp.Diff(c.install, said(plan.Install)))
		})
	}
}

func TestServiceKeepsPortsAndSelectorOfOtherWriters(t *testing.T) {
	s := sourceOf(secretOf("cool.v1", madeOnce("old"), none), nil)
	live := s.Objects.Services.Items[0].DeepCopy()
	live.UID, live.ResourceVersion = "u", "1"
	live.Spec.ClusterIP = "10.0.0.1"
	live.Spec.Ports = []corev1.ServicePort{{Name: "metrics", Port: 8443}, {Name: "https", Port: 443, NodePort: 30443}}
	live.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(csvOf("cool.v0"))}
	s.Objects.Services = olmcore.Found(live)
	plan := internalserving.CertificatesOf(s)
	require.Len(t, plan.Install, 1)
	after := objectOf(plan.Install[0]).(*corev1.Service)
	require.Empty(t, cmp.Diff([]corev1.ServicePort{
		{Name: "metrics", Port: 8443}, {Name: "443", Port: 443, NodePort: 30443, TargetPort: intstr.FromInt32(443)},
	}, after.Spec.Ports))
	require.Equal(t, "10.0.0.1", after.Spec.ClusterIP)
	require.True(t, olmcore.OwnedBy(after, s.CSV.UID))
	require.Len(t, after.OwnerReferences, 1)
}

func TestInvalidServicesAreReported(t *testing.T) {
	for problem, change := range map[string]func(c *v1alpha1.ClusterServiceVersion){
		"port 443 of deployment cool has two target ports: 9443 and 443": func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions = append(
				c.Spec.WebhookDefinitions, v1alpha1.WebhookDescription{DeploymentName: deployment, TargetPort: new(intstr.FromInt32(9443))},
			)
			c.Spec.WebhookDefinitions[0], c.Spec.WebhookDefinitions[1] = c.Spec.WebhookDefinitions[1], c.Spec.WebhookDefinitions[0]
		},
		"deployments c-ool and c.ool have the same service c-ool-service": func(c *v1alpha1.ClusterServiceVersion) {
			specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
			*specs = append(*specs, (*specs)[0])
			(*specs)[0].Name, (*specs)[1].Name = "c.ool", "c-ool"
			c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "c.ool"}, {DeploymentName: "c-ool"}}
		},
	} {
		c := csvOf("cool.v1")
		change(c)
		plan := internalserving.CertificatesOf(internalserving.Backends{Operator: model.Operator{CSV: c, Now: now, Objects: &serving.Objects{}}})
		require.Equal(t, problem, plan.Problem)
		require.Empty(t, plan.Requests)
	}
	c := csvOf("cool.v1")
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name, c.Spec.WebhookDefinitions[0].DeploymentName = "1st", "1st"
	in := internalserving.Backends{Operator: model.Operator{CSV: c, Now: now, Objects: &serving.Objects{}}}
	require.Contains(
		t,
		internalserving.CertificatesOf(in).Problem,
		`deployment 1st cannot be called: "1st-service" is not a valid name of a Service`,
	)
}

// TestForgedSecretAffectsOnlyItsOwnClients checks that data that a tenant wrote into the Secret reaches only the
// clients of its own Service, within limits.
func TestForgedSecretAffectsOnlyItsOwnClients(t *testing.T) {
	old, other := madeOnce("old"), madeOnce("third")
	bundle := func(change func(s *corev1.Secret)) string {
		return string(
			internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", old, none, change), running(old.CAPEM, 2))).Trust(deployment, old.CAPEM),
		)
	}
	require.Equal(t, string(old.CAPEM)+string(other.CAPEM), bundle(func(s *corev1.Secret) { s.Data["previous.olmCAKey"] = other.CAPEM }))
	require.Equal(t, string(old.CAPEM), bundle(func(s *corev1.Secret) { s.Data["previous.olmCAKey"] = bytes.Repeat(other.CAPEM, 1000) }))
	require.Equal(t, string(old.CAPEM), bundle(func(s *corev1.Secret) { s.Data["next.olmCAKey"] = []byte("-----BEGIN CERTIFICATE-----") }))
	require.Equal(t, string(old.CAPEM), bundle(func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/retired-authorities", parse(old.CAPEM)[0].ID+",,x")
	}), "the current authority never retires")
	require.Contains(
		t,
		internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", old, none, func(s *corev1.Secret) { s.Immutable = new(true) }), nil)).Problem,
		"is immutable",
	)
}

// TestSecretOfAnotherOperatorIsNotWritten checks Deployments with different names that have the same Service name.
func TestSecretOfAnotherOperatorIsNotWritten(t *testing.T) {
	other, goes, copied := csvOf("other.v1"), csvOf("other.v1"), csvOf("other.v1")
	goes.DeletionTimestamp = new(metav1.NewTime(now))
	copied.Labels = map[string]string{v1alpha1.CopiedLabelKey: "elsewhere"}
	uncalled := csvOf("other.v1")
	uncalled.Spec.WebhookDefinitions = nil
	const owned = "secret cool-service-cert is owned by ClusterServiceVersion other.v1"
	for name, c := range map[string]struct {
		neighbour *v1alpha1.ClusterServiceVersion
		relatives sets.Set[*v1alpha1.ClusterServiceVersion]
		problem   string
	}{
		"of another operator":                {neighbour: other, problem: owned},
		"of the replaced version":            {neighbour: other, relatives: sets.New(other)},
		"of a CSV that is being deleted":     {neighbour: goes},
		"of a copy":                          {neighbour: copied},
		"of a CSV that needs no certificate": {neighbour: uncalled},
		"without an existing owner":          {neighbour: csvOf("third.v1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := sourceOf(secretOf("other.v1", madeOnce("old"), none), nil)
			s.Neighbours, s.Relatives = append(s.Neighbours, c.neighbour), c.relatives
			plan := internalserving.CertificatesOf(s)
			require.Equal(t, c.problem, plan.Problem)
			require.Equal(t, c.problem == "", len(plan.Install) > 0, "it is written only where it is not another's")
		})
	}
}

// FuzzSecret checks that a decision is made for any content of a Secret. Clients lose no authority that is in use, and
// a second call does not write again.
func FuzzSecret(f *testing.F) {
	old, next := madeOnce("old"), madeOnce("next")
	f.Add(old.CAPEM, old.CertPEM, old.KeyPEM, next.CAPEM, next.CertPEM, next.KeyPEM, old.CAPEM, "a,b", true, int64(0))
	f.Add([]byte("x"), old.CertPEM, []byte(nil), next.CAPEM, []byte(nil), next.KeyPEM, next.CAPEM, "", false, int64(1)<<60)
	f.Fuzz(func(t *testing.T, ca, cert, key, nextCA, nextCert, nextKey, previous []byte, retired string, rolledOut bool, at int64) {
		secret := secretOf(
			"cool.v1",
			serving.Certificate{CAPEM: ca, CertPEM: cert, KeyPEM: key},
			serving.Certificate{CAPEM: nextCA, CertPEM: nextCert, KeyPEM: nextKey},
			func(s *corev1.Secret) {
				s.Data["previous.olmCAKey"] = previous
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/retired-authorities", retired)
			},
		)
		live := running(ca, 1)
		if rolledOut {
			live = running(ca, 2)
		}
		s := sourceOf(secret, live, trusts(old.CAPEM, previous))
		s.Now = now.Add(time.Duration(at))
		before := secret.DeepCopy()
		plan := internalserving.CertificatesOf(s)
		bundle := plan.Trust(deployment, old.CAPEM)
		require.Equal(t, string(bundle), string(plan.Trust(deployment, bundle)), "a bundle that was written stays")
		for _, a := range append(plan.Install, plan.Settle...) {
			if o, ok := objectOf(a).(*corev1.Secret); ok {
				o = o.DeepCopy()
				o.ResourceVersion = "9"
				again := sourceOf(o, live, trusts(old.CAPEM, previous))
				again.Now = s.Now
				for _, b := range append(internalserving.CertificatesOf(again).Install, internalserving.CertificatesOf(again).Settle...) {
					_, _, first := a.Describe()
					_, _, second := b.Describe()
					require.NotEqual(t, first, second)
				}
			}
		}
		require.Empty(t, cmp.Diff(before, secret))
	})
}

// written returns the Secret that a plan writes, or nil.
func written(plan internalserving.Certificates) *corev1.Secret {
	for _, a := range append(plan.Install, plan.Settle...) {
		if o, ok := objectOf(a).(*corev1.Secret); ok {
			return o
		}
	}
	return nil
}

func TestSecretRecordsTheRotation(t *testing.T) {
	old, next, third := madeOnce("old"), madeOnce("next"), madeOnce("third")
	id := func(c serving.Certificate) string { return parse(c.CAPEM)[0].ID }
	retired := func(ids string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/retired-authorities", ids)
		}
	}
	waited := func(s *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "olmcore/next-trusted-since", now.Add(-internalserving.TrustGrace).Format(time.RFC3339))
	}
	t.Run("the previous authority is recorded even if no client trusts it", func(t *testing.T) {
		s := written(internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", old, next, waited), running(old.CAPEM, 2))))
		require.Equal(t, old.CAPEM, s.Data["previous.olmCAKey"])
		require.Equal(t, next.CertPEM, s.Data["tls.crt"])
		require.Equal(t, internalserving.Hash(next.CAPEM), s.Annotations["olmcahash"])
		require.NotContains(t, s.Data, "next.tls.crt")
	})
	t.Run("other authorities that clients trust are recorded", func(t *testing.T) {
		s := written(
			internalserving.CertificatesOf(sourceOf(secretOf("cool.v1", old, next, waited), running(old.CAPEM, 2), trusts(next.CAPEM, third.CAPEM))),
		)
		require.Equal(t, string(old.CAPEM)+string(third.CAPEM), string(s.Data["previous.olmCAKey"]))
	})
	t.Run("retired authorities are recorded", func(t *testing.T) {
		s := written(
			internalserving.CertificatesOf(
				sourceOf(secretOf("cool.v1", next, none, retired("x")), running(next.CAPEM, 2), trusts(next.CAPEM, old.CAPEM)),
			),
		)
		require.Equal(t, id(old)+",x", s.Annotations["olmcore/retired-authorities"])
		require.NotContains(t, s.Data, "previous.olmCAKey")
	})
	t.Run("an authority that is used again is not retired", func(t *testing.T) {
		s := sourceOf(secretOf("cool.v1", none, none, retired(id(old)+",x")), nil)
		s.Issued = []serving.Issued{{Deployment: deployment, Certificate: old}}
		require.Equal(t, "x", written(internalserving.CertificatesOf(s)).Annotations["olmcore/retired-authorities"])
	})
	t.Run("an invalid next certificate is dropped if none is needed", func(t *testing.T) {
		plan := internalserving.CertificatesOf(
			sourceOf(
				secretOf("cool.v1", old, serving.Certificate{CAPEM: next.CAPEM, CertPEM: old.CertPEM, KeyPEM: old.KeyPEM}),
				running(old.CAPEM, 2),
			),
		)
		require.NotContains(t, written(plan).Data, "next.olmCAKey")
		require.Empty(t, plan.Requests)
	})
	t.Run("the hash of its authority", func(t *testing.T) {
		s := written(
			internalserving.CertificatesOf(
				sourceOf(secretOf("cool.v1", old, none, func(s *corev1.Secret) { s.Annotations["olmcahash"] = "x" }), nil),
			),
		)
		require.Equal(t, internalserving.Hash(old.CAPEM), s.Annotations["olmcahash"])
	})
}

// TestAuthoritiesRetireAfterTheRollout checks that no authority retires while one of several signs shows that an old
// Pod exists.
func TestAuthoritiesRetireAfterTheRollout(t *testing.T) {
	old, next := madeOnce("old"), madeOnce("next")
	for name, change := range map[string]func(s *internalserving.Backends){
		"a Pod is terminating":            func(s *internalserving.Backends) { s.Deployments[0].Status.TerminatingReplicas = new(int32(1)) },
		"the Deployment is being deleted": func(s *internalserving.Backends) { s.Deployments[0].DeletionTimestamp = &metav1.Time{Time: now} },
		"its spec was not observed":       func(s *internalserving.Backends) { s.Deployments[0].Generation = 2 },
		"a Pod is of another rollout":     func(s *internalserving.Backends) { s.Deployments[0].Status.UpdatedReplicas = 1 },
		"it has another hash":             func(s *internalserving.Backends) { s.Deployments[0].Spec.Template.Annotations["olmcahash"] = "x" },
		"it has another certificate": func(s *internalserving.Backends) {
			s.Objects.Secrets.Items[0].Annotations["olmcore/certificate-hash"] = "x"
		},
		"there is none":                     func(s *internalserving.Backends) { s.Deployments = nil },
		"the Secret belongs to another CSV": func(s *internalserving.Backends) { s.CSV = csvOf("cool.v2") },
	} {
		t.Run(name, func(t *testing.T) {
			s := sourceOf(secretOf("cool.v1", next, none), running(next.CAPEM, 2), trusts(old.CAPEM, next.CAPEM))
			require.NotEmpty(t, internalserving.CertificatesOf(s).Settle)
			change(&s)
			require.Empty(t, internalserving.CertificatesOf(s).Settle)
		})
	}
}
