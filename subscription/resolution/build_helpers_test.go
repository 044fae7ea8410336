// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func bundle(name string, properties ...olmcore.Property) resolution.Bundle {
	return resolution.Bundle{Name: name, Bundle: olmcore.Bundle{Image: "example.invalid/" + name, Properties: properties}}
}

func property(kind, format string, args ...any) olmcore.Property {
	return olmcore.Property{Type: kind, Value: json.RawMessage(fmt.Sprintf(format, args...))}
}

func packageProperty(name, version string) olmcore.Property {
	return property(resolution.PropertyPackage, `{"packageName":%q,"version":%q}`, name, version)
}

func provides(kind string) olmcore.Property {
	return property(resolution.PropertyGVK, `{"group":"g","kind":%q,"version":"v1"}`, kind)
}

func requires(kind string) olmcore.Property {
	return property(resolution.PropertyGVKRequired, `{"group":"g","kind":%q,"version":"v1"}`, kind)
}

func requiresPackage(name, versions string) olmcore.Property {
	return property(resolution.PropertyPackageRequired, `{"packageName":%q,"versionRange":%q}`, name, versions)
}

func renamed(value, key string) string {
	return strings.Replace(value, key, key+"other.", 1)
}
