// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/olmcore/olm/subscription/resolution/packages"
)

var errNoManifest = errors.New("neither a PackageManifest nor a list of them")

// icons is the subresource packagemanifests/icon: the image itself, of the default channel's head.
type icons struct{ content *Content }

var _ rest.Connecter = icons{}

// New implements rest.Storage.
func (icons) New() runtime.Object { return &packages.PackageManifest{} }

// Destroy implements rest.Storage.
func (icons) Destroy() {}

// NewConnectOptions implements rest.Connecter.
func (icons) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// ConnectMethods implements rest.Connecter.
func (icons) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect implements rest.Connecter.
func (s icons) Connect(ctx context.Context, name string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	m := s.content.findWithIcons(genericapirequest.NamespaceValue(ctx), name)
	if m == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	media, data := iconOf(m)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256(data)
		for header, value := range map[string]string{
			"Content-Type": media, "Etag": `"` + hex.EncodeToString(sum[:16]) + `"`,
			// Anybody may have drawn it: opened as a page it must not run, fetch or be taken for anything else.
			"X-Content-Type-Options":  "nosniff",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
		} {
			w.Header().Set(header, value)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}), nil
}

// iconOf returns the icon of a package, or one for packages without.
func iconOf(m *packages.PackageManifest) (media string, data []byte) {
	if head := m.Head(); head != nil && len(head.CurrentCSVDesc.Icon) > 0 {
		icon := head.CurrentCSVDesc.Icon[0]
		if data, err := base64.StdEncoding.DecodeString(icon.Data); err == nil {
			return icon.MediaType, data
		}
	}
	return "image/svg+xml", []byte(noIcon)
}

// noIcon is a box.
const noIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#6a6e73" stroke-linejoin="round">` +
	`<path d="M12 2 3 7v10l9 5 9-5V7zM3 7l9 5 9-5M12 12v10"/></svg>`
