// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

type (
	validatingConfiguration = admissionregistrationv1.ValidatingWebhookConfiguration
	mutatingConfiguration   = admissionregistrationv1.MutatingWebhookConfiguration
	definition              = apiextensionsv1.CustomResourceDefinition
	description             = v1alpha1.WebhookDescription
)

const (
	validating = v1alpha1.ValidatingAdmissionWebhook
	mutating   = v1alpha1.MutatingAdmissionWebhook
	conversion = v1alpha1.ConversionWebhook
)

// backends contains the caBundle that each client of a Deployment must get.
type backends map[string][]byte

func (b backends) Trust(deployment string, have []byte) []byte {
	if bundle, ok := b[deployment]; ok {
		return bundle
	}
	return have
}

// follower is a backend during a certificate rotation. Existing clients must trust both authorities, and no new client
// must be created.
type follower struct{ old, next []byte }

func (f follower) Trust(_ string, have []byte) []byte {
	if have == nil {
		return nil
	}
	return bytes.Join([][]byte{f.old, f.next}, nil)
}

var first, second = authority(1), authority(2)

// authority returns the certificate of an authority. The same number gives the same certificate.
func authority(number byte) []byte {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(number)), Subject: pkix.Name{CommonName: fmt.Sprint(number)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: csvtest.Now, NotAfter: csvtest.Now.Add(time.Hour),
	}
	data, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
}

// operator returns version 1 of an operator that supports only all namespaces, with these webhooks.
func operator(webhooks ...description) *v1alpha1.ClusterServiceVersion {
	c := csvtest.Operator("cool.v1", 1)
	c.Spec.InstallModes = []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
		{Type: v1alpha1.InstallModeTypeOwnNamespace},
	}
	c.Spec.WebhookDefinitions = webhooks
	return c
}

func describe(name string, kind v1alpha1.WebhookAdmissionType, changes ...func(w *description)) description {
	w := csvtest.Webhook(name, kind)
	for _, change := range changes {
		change(&w)
	}
	return w
}

// everything returns one webhook of each type.
func everything() []description {
	return []description{describe("v.example.com", validating), describe("m.example.com", mutating), describe("c", conversion)}
}

// crd returns a CRD that was installed with version 1 of the operator.
func crd(name string, changes ...func(crd *definition)) *definition {
	d := &definition{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "crd", ResourceVersion: "7", Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v1"},
	}}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: strings.TrimSuffix(name, ".example.com"), Kind: "Kind"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// source returns a Source whose webhooks are not installed yet. Its Deployment has a certificate.
func source(c *v1alpha1.ClusterServiceVersion, objects ...olmcore.Object) internalserving.Clients {
	s := internalserving.Clients{
		Operator:     model.Operator{CSV: c, Group: group(operatorsv1.OperatorGroupSpec{}), Objects: &serving.Objects{}},
		Certificates: backends{"cool": first},
	}
	s.Objects.ValidatingWebhookConfigurations.Complete, s.Objects.MutatingWebhookConfigurations.Complete = true, true
	observe(&s, objects...)
	return s
}

func observe(s *internalserving.Clients, objects ...olmcore.Object) {
	for _, o := range objects {
		switch o := o.(type) {
		case *validatingConfiguration:
			s.Objects.ValidatingWebhookConfigurations.Items = append(s.Objects.ValidatingWebhookConfigurations.Items, o)
		case *mutatingConfiguration:
			s.Objects.MutatingWebhookConfigurations.Items = append(s.Objects.MutatingWebhookConfigurations.Items, o)
		case *definition:
			s.CRDs = append(s.CRDs, o)
		}
	}
}

func group(spec operatorsv1.OperatorGroupSpec) *operatorsv1.OperatorGroup {
	g := csvtest.Group()
	g.Spec, g.Status.Namespaces = spec, []string{""}
	return g
}

// installed returns what Install makes of a source, as the API server stores it.
func installed(t require.TestingT, s internalserving.Clients) []olmcore.Object {
	cluster := fake.NewCluster(csvtest.Now)
	for _, crd := range s.CRDs {
		require.NoError(t, cluster.Load(crd))
	}
	actions, problem := s.Install()
	require.Empty(t, problem)
	do(t, cluster, actions)
	return stored(t, cluster)
}

func do(t require.TestingT, cluster *fake.Cluster, actions []olmcore.Action) {
	for _, a := range actions {
		require.NoError(t, cluster.Do(context.Background(), a))
	}
}

// stored returns the objects of a cluster that this package writes.
func stored(t require.TestingT, cluster *fake.Cluster) []olmcore.Object {
	var objects []olmcore.Object
	for _, o := range cluster.Objects() {
		switch o.(type) {
		case *validatingConfiguration, *mutatingConfiguration, *definition:
			objects = append(objects, o)
		}
	}
	return objects
}

// lines returns descriptions of actions with their reasons.
func lines(actions []olmcore.Action) []string {
	var all []string
	for _, a := range actions {
		verb, ref, cause := a.Describe()
		line := fmt.Sprintf("%s %s %s (%s)", verb, ref.Kind, ref.Name, cause.Reason)
		if as := a.Identity(); as != nil {
			line += " as " + as.Name
		}
		all = append(all, line)
	}
	return all
}

func account() *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "limited"}
}

// validated returns a configuration of version 1 as OLM creates it and the API server stores it.
func validated(t testing.TB, name string, w description, changes ...func(o *validatingConfiguration)) *validatingConfiguration {
	hash, err := olmcore.Hash(&w)
	require.NoError(t, err)
	o := &validatingConfiguration{ObjectMeta: csvtest.Ours(name)}
	o.Labels["olm.webhook-description-generate-name"] = w.GenerateName
	o.Labels["olm.webhook-description-hash"] = hash
	o.Labels["olm.managed"] = "true"
	hook := w.DeepCopy().GetValidatingWebhook("ns", &metav1.LabelSelector{}, first)
	hook.FailurePolicy, hook.MatchPolicy, hook.TimeoutSeconds = new(
		admissionregistrationv1.Fail,
	), new(
		admissionregistrationv1.Equivalent,
	), new(
		int32(10),
	)
	hook.ObjectSelector = &metav1.LabelSelector{}
	for i := range hook.Rules {
		hook.Rules[i].Scope = new(admissionregistrationv1.AllScopes)
	}
	o.Webhooks = []admissionregistrationv1.ValidatingWebhook{hook}
	for _, change := range changes {
		change(o)
	}
	return o
}

// firstInstalledBy makes a CRD belong to the operator of a namespace.
func firstInstalledBy(namespace string) func(crd *definition) {
	return func(crd *definition) {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, olmcore.AnnotationFirstInstalledBy, namespace)
	}
}

// healthOf returns the State of webhooks, and the problem or the unread lists. Without them, the message is that of
// OLM.
func healthOf(s internalserving.Clients) (state internalserving.State, why string) {
	h := s.Health()
	switch {
	case h.State != internalserving.Waiting && h.State != internalserving.Missing:
		return h.State, h.Message
	case h.Message != "webhooks not installed":
		panic(h.Message)
	}
	return h.State, ""
}
