// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

const host = "op-service.ns.svc"

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	bundle      []byte
}

func newAuthority(t *testing.T, name string, parent *authority) *authority {
	a := &authority{}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: start.Add(-time.Hour), NotAfter: start.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := &authority{certificate: template, key: a.key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, a.key.Public(), signer.key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// serve makes the Secret that a server of a host serves with.
func (a *authority) serve(t *testing.T, host string) *corev1.Secret {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotBefore: start.Add(-time.Hour), NotAfter: start.Add(12 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "op-service-cert", Namespace: "ns"}, Data: map[string][]byte{
		"tls.crt": pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: der},
		), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

// operator is a Deployment that serves behind a Service with the Secret op-service-cert.
func operator() (*appsv1.Deployment, *corev1.Service) {
	d := deployment("op")
	d.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "webhook-cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "op-service-cert"}}},
		{Name: "other", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "other"}}},
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "op-service", Namespace: "ns"}}
	s.Spec.Selector, s.Spec.Ports = d.Spec.Template.Labels, []corev1.ServicePort{{Port: 443}}
	return d, s
}

// serving is a cluster with an operator whose webhook is asked about ConfigMaps, whose CRD it converts, and whose API
// is served by it.
func serving(t *testing.T, a *authority) *fake.Cluster {
	c := newCluster(t, "a")
	d, s := operator()
	hook := validating(func(hook *validatingWebhook) {
		hook.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "op-service", Path: new("/check")}
		hook.ClientConfig.CABundle = a.bundle
	})
	definition := converting()
	definition.Spec.Conversion.Webhook.ClientConfig.CABundle = a.bundle
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.apis.example.com"}, Spec: apiregistrationv1.APIServiceSpec{
		Group: "apis.example.com", Version: "v1", GroupPriorityMinimum: 1, VersionPriority: 1, CABundle: a.bundle,
		Service: &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "op-service"},
	}}
	require.NoError(t, c.Create(a.serve(t, host), d, s, hook, mutating("url"), definition, api))
	require.NoError(t, fake.Edit(c, "", "url", func(m *admissionregistrationv1.MutatingWebhookConfiguration) {
		m.Webhooks[0].ClientConfig.URL = new("https://example.com/")
	}))
	settle(t, c)
	c.Webhooks = c.Serving().Webhooks(nil)
	return c
}

// TestWebhooksAreServedByTheWorkloads, and fail as they would on a real cluster.
func TestWebhooksAreServedByTheWorkloads(t *testing.T) {
	const call = `Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post "https://op-service.ns.svc:443/check?timeout=10s": `
	a, other := newAuthority(t, "a", nil), newAuthority(t, "b", nil)
	secret := func(change func(s *corev1.Secret)) func(*testing.T, *fake.Cluster) {
		return func(t *testing.T, c *fake.Cluster) { require.NoError(t, fake.Edit(c, "ns", "op-service-cert", change)) }
	}
	become := func(next *corev1.Secret) func(*testing.T, *fake.Cluster) {
		return secret(func(s *corev1.Secret) { s.Data = next.Data })
	}
	restart := func(t *testing.T, c *fake.Cluster) {
		c.Deployment("ns", "op").Break("")
		settle(t, c)
		c.Deployment("ns", "op").Heal()
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, c *fake.Cluster)
		want   string // empty: it answers
	}{
		"all is well": {func(*testing.T, *fake.Cluster) {}, ""},
		"the Service is gone": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "op-service"}))
		}, `service "op-service" not found`},
		"another port": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "op-service", func(s *corev1.Service) { s.Spec.Ports[0].Port = 8443 }))
		}, `no service port 443 found for service "op-service"`},
		"other Pods": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "op-service", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }))
		}, `no endpoints available for service "op-service"`},
		"no selector": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "op-service", func(s *corev1.Service) { s.Spec.Selector = nil }))
		}, `no endpoints available for service "op-service"`},
		"the Deployment does not run": {func(_ *testing.T, c *fake.Cluster) {
			c.Deployment("ns", "op").Break("")
		}, `no endpoints available for service "op-service"`},
		"the next certificate": {become(a.serve(t, host)), ""},
		"for another host": {
			become(a.serve(t, "other.ns.svc")),
			"tls: failed to verify certificate: x509: certificate is valid for other.ns.svc, not op-service.ns.svc",
		},
		"of another authority": {
			become(other.serve(t, host)), "tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
		"the first one still serves after the Secret is gone": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "op-service-cert"}))
		}, ""},
		"no certificate after a restart": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "op-service-cert"}))
			restart(t, c)
		}, "dial tcp: connect: connection refused"},
		"Pods that mount it no more": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "op", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = nil }))
		}, "dial tcp: connect: connection refused"},
		"a key of another": {func(t *testing.T, c *fake.Cluster) {
			key := a.serve(t, host).Data["tls.key"]
			secret(func(s *corev1.Secret) { s.Data["tls.key"] = key })(t, c)
		}, "dial tcp: connect: connection refused (tls: private key does not match public key)"},
		"half a chain": {secret(func(s *corev1.Secret) {
			s.Data["tls.crt"] = append(bytes.Clone(s.Data["tls.crt"]), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...)
		}), "dial tcp: connect: connection refused (x509: malformed certificate)"},
		"it expired": {func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.RunFor(13*time.Hour)) },
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time " +
				"2026-01-01T13:00:00Z is after 2026-01-01T12:00:00Z"},
		"through an intermediate": {func(t *testing.T, c *fake.Cluster) {
			middle := newAuthority(t, "m", a)
			next := middle.serve(t, host)
			next.Data["tls.crt"] = append(next.Data["tls.crt"], middle.bundle...)
			become(next)(t, c)
		}, ""},
		"without the intermediate": {
			become(newAuthority(t, "m", a).serve(t, host)), "tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
		"another Secret with a certificate": {func(t *testing.T, c *fake.Cluster) {
			s := other.serve(t, host)
			s.Name = "other"
			require.NoError(t, c.Create(s))
		}, ""},
		"a Pod of its own": {func(t *testing.T, c *fake.Cluster) {
			c.Deployment("ns", "op").Break("")
			pod := newPod("p")
			d, _ := operator()
			pod.Labels, pod.Spec.Volumes = d.Spec.Template.Labels, d.Spec.Template.Spec.Volumes[1:]
			require.NoError(t, c.Create(pod))
			require.NoError(t, c.RunFor(time.Minute))
		}, ""},
		"a Pod without a certificate": {func(t *testing.T, c *fake.Cluster) {
			pod := newPod("p")
			pod.Labels = map[string]string{"app": "op"}
			require.NoError(t, c.Create(pod))
			require.NoError(t, c.RunFor(time.Minute))
		}, "dial tcp: connect: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serving(t, a)
			require.NoError(t, c.Serving().Check())
			tc.change(t, c)
			settle(t, c)
			err := c.Create(configMap("m"))
			if tc.want == "" {
				require.NoError(t, err)
				require.NoError(t, c.Serving().Check())
				return
			}
			require.ErrorContains(t, err, call+tc.want)
			require.Equal(t, olmcore.Webhook, olmcore.Classify(err))
			all := c.Serving().Check()
			for _, who := range []string{"ValidatingWebhookConfiguration check: check.example.com: ", "CustomResourceDefinition " +
				"widgets.example.com: conversion: ", "APIService v1.apis.example.com: APIService: "} {
				require.ErrorContains(t, all, who+`Post "https://op-service.ns.svc:443/`)
			}
			require.ErrorContains(t, all, tc.want)
		})
	}
}

// TestACertificateFollowsAnotherWithoutAGap only when clients trust both before and until all Pods are new.
func TestACertificateFollowsAnotherWithoutAGap(t *testing.T) {
	first, second := newAuthority(t, "a", nil), newAuthority(t, "b", nil)
	c := serving(t, first)
	trust := func(bundles ...[]byte) {
		bundle := bytes.Join(bundles, nil)
		require.NoError(t, fake.Edit(c, "", "check", func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].ClientConfig.CABundle = bundle
		}))
		require.NoError(t, fake.Edit(c, "", "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
		}))
		require.NoError(t, fake.Edit(c, "", "v1.apis.example.com", func(a *apiregistrationv1.APIService) { a.Spec.CABundle = bundle }))
	}
	trust(first.bundle, second.bundle)
	require.NoError(t, c.Serving().Check())
	next := second.serve(t, host)
	require.NoError(t, fake.Edit(c, "ns", "op-service-cert", func(s *corev1.Secret) { s.Data = next.Data }))
	require.NoError(t, c.Serving().Check())
	trust(second.bundle)
	require.ErrorContains(t, c.Serving().Check(), "unknown authority", "Pods that read the files once serve with the first")
	trust(first.bundle, second.bundle)
	require.NoError(
		t,
		fake.Edit(c, "ns", "op", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"olmcahash": "second"} }),
	)
	settle(t, c)
	trust(second.bundle)
	require.NoError(t, c.Serving().Check())
}

// TestWebhooksAnswerThroughServing what the test says, and convert by changing the version.
func TestWebhooksAnswerThroughServing(t *testing.T) {
	c := serving(t, newAuthority(t, "a", nil))
	require.NoError(t, c.Create(widget("w")))
	old := widgetGVK
	old.Version = "v1beta1"
	o, err := c.Get(t.Context(), old, "ns", "w")
	require.NoError(t, err)
	require.Equal(t, old, olmcore.GVKOf(o))
	c.Webhooks = c.Serving().Webhooks(func(fake.WebhookCall) fake.WebhookAnswer { return fake.WebhookAnswer{Denied: "no"} })
	require.ErrorContains(t, c.Create(configMap("m")), "denied the request: no")
	c.Deployment("ns", "op").Break("")
	settle(t, c)
	_, err = c.Get(t.Context(), old, "ns", "w")
	require.ErrorContains(
		t,
		err,
		`conversion webhook for example.com/v1, Kind=Widget failed: Post "https://op-service.ns.svc:443/convert?timeout=10s": no endpoints available`,
	)
}
