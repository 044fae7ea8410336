// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// apiName is the APIService of the fixture.
const apiName = "v1.ice.example.com"

// authority returns the certificate of an authority, as PEM. The same name gives the same certificate.
func namedAuthority(name string) []byte {
	seed := sha256.Sum256([]byte(name))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: csvtest.Now.Add(-time.Hour), NotAfter: csvtest.Now.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(bytes.NewReader(nil), template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var oldCA, newCA, otherCA = namedAuthority("old"), namedAuthority("new"), namedAuthority("other")

func join(bundles ...[]byte) []byte { return bytes.Join(bundles, nil) }

func hashOf(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// trusting contains the caBundles of Deployments by name.
type trustedBundles map[string][]byte

func (t trustedBundles) Trust(deployment string, _ []byte) []byte { return t[deployment] }

// operator returns a version with one owned APIService. The Deployment cool serves its two kinds.
func apiOperator(name string, version int) *v1alpha1.ClusterServiceVersion {
	c := csvtest.Operator(name, version)
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{
		{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice", DeploymentName: "cool", ContainerPort: 8443},
		{Name: "cubes", Group: "ice.example.com", Version: "v1", Kind: "Cube", DeploymentName: "cool", ContainerPort: 8443},
	}
	return c
}

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         namespace,
		Name:              name,
		UID:               types.UID(namespace + "-" + name),
		ResourceVersion:   "7",
		Labels:            labels,
		CreationTimestamp: *csvtest.Ago(time.Hour),
	}
}

// ownerLabels returns the owner labels that OLM writes for a version.
func ownerLabels(namespace, name string) map[string]string {
	labels := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: namespace, Name: name}.Labels()
	labels["olm.managed"] = "true"
	return labels
}

// liveAPI returns the APIService that OLM created for version cool.v2, with other priorities and an annotation of a
// user.
func liveAPI() *apiregistrationv1.APIService {
	service := &apiregistrationv1.APIService{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "apiregistration.k8s.io/v1",
			Kind:       "APIService",
		}, ObjectMeta: named("", apiName, ownerLabels("ns", "cool.v2")),
	}
	service.Annotations = map[string]string{"user": "x"}
	service.Spec = apiregistrationv1.APIServiceSpec{
		Group: "ice.example.com", Version: "v1", GroupPriorityMinimum: 9000, VersionPriority: 7, CABundle: newCA,
		Service: &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "cool-service", Port: new(int32(8443))},
	}
	setAvailable(service, apiregistrationv1.ConditionTrue, time.Hour)
	return service
}

func setAvailable(service *apiregistrationv1.APIService, status apiregistrationv1.ConditionStatus, since time.Duration) {
	service.Status.Conditions = []apiregistrationv1.APIServiceCondition{
		{Type: apiregistrationv1.Available, Status: status, LastTransitionTime: *csvtest.Ago(since)},
	}
}

// installed returns version cool.v2 with all objects up to date. cool.v1, which it replaces, exists too.
func installedAPI() internalserving.Clients {
	predecessor := apiOperator("cool.v1", 1)
	csvtest.Hold(predecessor, csvtest.Replacing, "BeingReplaced", "", time.Minute)
	c := apiOperator("cool.v2", 2)
	c.Spec.Replaces = "cool.v1"
	d := &appsv1.Deployment{ObjectMeta: named("ns", "cool", ownerLabels("ns", "cool.v2")), Spec: csvtest.DeploymentSpec("cool").Spec}
	d.Spec.Template.Annotations = map[string]string{"olmcahash": hashOf(newCA)}
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 1, 1, 1
	secret := &corev1.Secret{
		ObjectMeta: named("ns", "cool-service-cert", nil), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": namedAuthority("leaf"), "tls.key": []byte("key"), "olmCAKey": newCA},
	}
	secret.Annotations = map[string]string{"olmcahash": hashOf(newCA)}
	return internalserving.Clients{Certificates: trustedBundles{"cool": newCA}, Operator: model.Operator{
		CSV: c, Now: csvtest.Now, Group: csvtest.Group(), Neighbours: []*v1alpha1.ClusterServiceVersion{predecessor},
		APIServices: []*apiregistrationv1.APIService{liveAPI()},
		Objects: &serving.Objects{
			Services: olmcore.Found(&corev1.Service{ObjectMeta: named("ns", "cool-service", nil)}),
			Secrets:  olmcore.Found(secret),
			Roles:    olmcore.Found(&rbacv1.Role{ObjectMeta: named("ns", "cool-service-cert", nil)}),
			RoleBindings: olmcore.Found(
				&rbacv1.RoleBinding{ObjectMeta: named("ns", "cool-service-cert", nil)},
				&rbacv1.RoleBinding{ObjectMeta: named("kube-system", "cool-service-auth-reader", nil)},
			),
			ClusterRoleBindings: olmcore.Found(
				&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "cool-service-system:auth-delegator", nil)},
			),
			Pods: olmcore.Found[*corev1.Pod](),
		},
		Deployments:     []*appsv1.Deployment{d},
		ServiceAccounts: []*corev1.ServiceAccount{{ObjectMeta: named("ns", "cool", nil)}},
		ServedAPIs: olmcore.Found(
			schema.GroupVersionKind{
				Group:   "ice.example.com",
				Version: "v1",
				Kind:    "Ice",
			},
			schema.GroupVersionKind{Group: "ice.example.com", Version: "v1", Kind: "Cube"},
		),
	}}
}

// changed returns the Source after changes.
func changed(changes ...func(*internalserving.Clients)) internalserving.Clients {
	s := installedAPI()
	for _, change := range changes {
		change(&s)
	}
	return s
}

// live changes the APIService of the fixture.
func live(change func(*apiregistrationv1.APIService)) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) { change(s.APIServices[0]) }
}

// ownedBy gives the APIService to another version.
func ownedBy(namespace, name string) func(*internalserving.Clients) {
	return live(func(a *apiregistrationv1.APIService) { a.Labels = ownerLabels(namespace, name) })
}

// updated returns the Update of an APIService to a changed copy.
func updated(t testing.TB, s internalserving.Clients, reason, message string, change func(*apiregistrationv1.APIService)) olmcore.Action {
	require.Len(t, s.APIServices, 1)
	after := s.APIServices[0].DeepCopy()
	change(after)
	u := olmcore.UpdateOf(s.APIServices[0], after, olmcore.Cause{Reason: reason, Message: message})
	u.As = s.Account
	return u
}

// apiWrites returns the writes of Install. No problem of an APIService prevents them.
func apiWrites(s internalserving.Clients) []olmcore.Action {
	actions, problem := s.Install()
	if problem != "" {
		panic(problem)
	}
	return actions
}
