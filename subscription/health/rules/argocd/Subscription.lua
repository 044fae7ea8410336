-- Health of Subscription objects for Argo CD, written from the table of
-- github.com/olmcore/olm/subscription/health/internal/rules: change it there.
-- Key in argocd-cm: resource.customizations.health.operators.coreos.com_Subscription
local hs = {}

local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then
    return value
  end
  return ""
end

local function oneOf(value, list)
  for _, entry in ipairs(list) do
    if value == entry then
      return true
    end
  end
  return false
end

local function condition(kind, status, reasons)
  local conditions = at(obj, "status", "conditions")
  if type(conditions) ~= "table" then
    return nil
  end
  for _, c in ipairs(conditions) do
    if type(c) == "table" and c.type == kind and c.status == status and (reasons == nil or oneOf(c.reason, reasons)) then
      return c
    end
  end
  return nil
end

local function said(value, otherwise)
  if text(value) ~= "" then
    return value
  end
  return otherwise
end

-- Deleting
if text(at(obj, "metadata", "deletionTimestamp")) ~= "" then
  hs.status = "Progressing"
  hs.message = "the Subscription is being deleted"
  return hs
end

-- InvalidSpec
if not (text(at(obj, "spec", "name")) ~= "") then
  hs.status = "Degraded"
  hs.message = "the Subscription names no package"
  return hs
end

-- InstallPlanFailed
if condition("InstallPlanFailed", "True") ~= nil then
  hs.status = "Degraded"
  hs.message = said(at(condition("InstallPlanFailed", "True"), "message"), "InstallPlan " .. text(at(obj, "status", "installPlanRef", "name")) .. " failed")
  return hs
end

-- RequiresApproval
if not (at(obj, "status", "state") == "AtLatestKnown") and condition("InstallPlanPending", "True", {"RequiresApproval"}) ~= nil then
  hs.status = "Suspended"
  hs.message = "InstallPlan " .. text(at(obj, "status", "installPlanRef", "name")) .. " waits for approval"
  return hs
end

-- InstallPlanPending
if not (at(obj, "status", "state") == "AtLatestKnown") and condition("InstallPlanPending", "True") ~= nil then
  hs.status = "Progressing"
  hs.message = said(at(condition("InstallPlanPending", "True"), "message"), "InstallPlan " .. text(at(obj, "status", "installPlanRef", "name")) .. " installs " .. text(at(obj, "status", "currentCSV")))
  return hs
end

-- ResolutionFailed
if condition("ResolutionFailed", "True") ~= nil then
  hs.status = "Degraded"
  hs.message = said(at(condition("ResolutionFailed", "True"), "message"), "the namespace cannot be resolved")
  return hs
end

-- BundleUnpackFailed
if condition("BundleUnpackFailed", "True") ~= nil then
  hs.status = "Degraded"
  hs.message = said(at(condition("BundleUnpackFailed", "True"), "message"), "a bundle cannot be unpacked")
  return hs
end

-- BundleUnpacking
if condition("BundleUnpacking", "True") ~= nil then
  hs.status = "Progressing"
  hs.message = said(at(condition("BundleUnpacking", "True"), "message"), "bundles are being unpacked")
  return hs
end

-- UpgradeFailed
if at(obj, "status", "state") == "UpgradeFailed" then
  hs.status = "Degraded"
  hs.message = text(at(obj, "status", "currentCSV")) .. " could not be installed"
  return hs
end

-- Installed
if at(obj, "status", "state") == "AtLatestKnown" and text(at(obj, "status", "installedCSV")) ~= "" then
  hs.status = "Healthy"
  hs.message = text(at(obj, "status", "installedCSV")) .. " is installed"
  return hs
end

-- InstallPlanMissing
if condition("InstallPlanMissing", "True") ~= nil then
  hs.status = "Progressing"
  hs.message = said(at(condition("InstallPlanMissing", "True"), "message"), "the InstallPlan was deleted")
  return hs
end

-- CatalogSourcesUnhealthy
if condition("CatalogSourcesUnhealthy", "True") ~= nil then
  hs.status = "Progressing"
  hs.message = said(at(condition("CatalogSourcesUnhealthy", "True"), "message"), "catalogs are not available")
  return hs
end

-- UpgradePending
if text(at(obj, "status", "currentCSV")) ~= "" then
  hs.status = "Progressing"
  hs.message = text(at(obj, "status", "currentCSV")) .. " is being installed"
  return hs
end

-- Resolving
hs.status = "Progressing"
hs.message = "the namespace has to be resolved"
return hs
